#include "models/loss/orpo_loss.h"

#include <ATen/ATen.h>

#include "models/loss/pair_loss.h"

namespace zero {
namespace {

/// log(p / (1 - p)). A certain answer counts as one whose p is the largest in fp32 below 1.
at::Tensor log_odds(const at::Tensor& log_p) {
  const at::Tensor below = at::clamp_max(log_p, -6e-8);
  return below - at::log(-at::expm1(below));
}

/// Sequences 0 and 1 are the answers, sequence 2 is the chosen answer with its prompt.
class OrpoLoss final : public PairLoss {
 public:
  explicit OrpoLoss(double beta) : PairLoss(3), beta_(beta) {}

  std::string name() const override { return "orpo"; }
  std::vector<std::string> needs() const override { return {answers_name}; }
  bool averages_tokens() const override { return true; }

 private:
  at::Tensor belongs(const Batch& batch, std::int64_t s) const override {
    if (s == 2) return (batch.documents == 0) | (batch.documents < -1);  // with the trunk
    return PairLoss::belongs(batch, s) & (named_tensor(batch, answers_name) != 0);
  }

  Value value_of(const at::Tensor& p, const Batch& batch) const override {
    const at::Tensor mean = (p / at::clamp_min(trained_tokens(batch), 1)).narrow(1, 0, 2), odds = log_odds(mean);
    const at::Tensor preferred = at::log_sigmoid(odds.select(1, 0) - odds.select(1, 1));
    return {-beta_ * preferred - token_share(batch) * p.select(1, 2), beta_ * mean, mean};
  }

  double beta_;
};

}  // namespace

std::unique_ptr<Loss> orpo_loss(double beta) { return std::make_unique<OrpoLoss>(beta); }

}  // namespace zero
