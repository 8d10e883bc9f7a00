#include "models/loss/kto_loss.h"

#include <ATen/ATen.h>

#include "models/loss/dpo_loss.h"
#include "models/loss/sequence_loss.h"
#include "models/undivided.h"

namespace zero {
namespace {

class KtoLoss final : public SequenceLoss {
 public:
  explicit KtoLoss(const KtoOptions& options) : options_(options) {}

  std::string name() const override { return "kto"; }
  std::vector<std::string> needs() const override { return {reference_name, desirable_name}; }
  std::vector<std::string> figures() const override {
    return {"rewards/chosen", "rewards/rejected", "rewards/margins", "logps/chosen", "logps/rejected", "kl",
            "desirable"};
  }

  void conclude(LossMeans& means) const override {
    const double desirable = means.at("desirable");
    for (const char* of : {"rewards/", "logps/"}) {
      means.at(std::string(of) + "chosen") /= desirable;
      means.at(std::string(of) + "rejected") /= 1 - desirable;
    }
    means.at("rewards/margins") = means.at("rewards/chosen") - means.at("rewards/rejected");
  }

 private:
  SequenceOutcome outcome(const at::Tensor& log_probabilities, const Batch& batch) const override {
    const Undivided sums;
    const at::Tensor& p = log_probabilities;
    const at::Tensor desirable = named_tensor(batch, desirable_name).to(p.scalar_type());
    const auto found = batch.named.find(divergence_name);
    const at::Tensor divergence = found == batch.named.end() ? at::zeros_like(desirable) : found->second;
    const at::Tensor ratio = p - named_tensor(batch, reference_name), sign = 2 * desirable - 1;
    at::Tensor weight = desirable * options_.desirable_weight + (1 - desirable) * options_.undesirable_weight;
    if (batch.row_weights.defined()) weight = weight * batch.row_weights.unsqueeze(1);
    const at::Tensor gain = at::sigmoid(options_.beta * sign * (ratio - divergence));
    const at::Tensor value = (weight * (1 - gain)).sum();
    const at::Tensor gradient = -weight * gain * (1 - gain) * options_.beta * sign;
    const at::Tensor rewards = options_.beta * ratio, other = 1 - desirable;
    const at::Tensor chosen = (rewards * desirable).sum(), rejected = (rewards * other).sum();
    return {value, gradient.to(p.scalar_type()),
            at::stack({chosen, rejected, chosen - rejected, (p * desirable).sum(), (p * other).sum(),
                       divergence.sum().to(p.scalar_type()), desirable.sum().to(p.scalar_type())})};
  }

  KtoOptions options_;
};

}  // namespace

std::unique_ptr<Loss> kto_loss(const KtoOptions& options) { return std::make_unique<KtoLoss>(options); }

}  // namespace zero
