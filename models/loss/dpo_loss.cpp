#include "models/loss/dpo_loss.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "models/loss/pair_loss.h"

namespace zero {
namespace {

/// log p - reference of both answers, [B], and the same divided by the answer's number of tokens.
struct Ratios {
  at::Tensor chosen, rejected, chosen_mean, rejected_mean;
  double beta, smoothing;

  at::Tensor margin() const { return beta * (chosen - rejected); }
};

at::Tensor smoothed(const at::Tensor& margin, double smoothing) {
  return -(1 - smoothing) * at::log_sigmoid(margin) - smoothing * at::log_sigmoid(-margin);
}

at::Tensor robust(const Ratios& r) {
  const at::Tensor m = r.margin();
  return (-(1 - r.smoothing) * at::log_sigmoid(m) + r.smoothing * at::log_sigmoid(-m)) / (1 - 2 * r.smoothing);
}

at::Tensor exo_pair(const Ratios& r) {
  const at::Tensor m = r.margin();
  return at::sigmoid(m) * (at::log_sigmoid(m) - std::log1p(-r.smoothing)) +
         at::sigmoid(-m) * (at::log_sigmoid(-m) - std::log(r.smoothing));
}

at::Tensor nca_pair(const Ratios& r) {
  const at::Tensor chosen = r.beta * r.chosen, rejected = r.beta * r.rejected;
  return -at::log_sigmoid(chosen) - 0.5 * at::log_sigmoid(-chosen) - 0.5 * at::log_sigmoid(-rejected);
}

using Term = at::Tensor (*)(const Ratios& r);

/// "sft" is no function of ratios, and has no entry.
const std::vector<std::pair<std::string, Term>>& ratio_terms() {
  using R = const Ratios&;
  static const std::vector<std::pair<std::string, Term>> all = {
      {"sigmoid", [](R r) { return smoothed(r.margin(), r.smoothing); }},
      {"robust", robust},
      {"sigmoid_norm", [](R r) { return smoothed(r.beta * (r.chosen_mean - r.rejected_mean), r.smoothing); }},
      {"hinge", [](R r) { return at::relu(1 - r.margin()); }},
      {"ipo", [](R r) { return at::square(r.chosen_mean - r.rejected_mean - 1 / (2 * r.beta)); }},
      {"exo_pair", exo_pair},
      {"nca_pair", nca_pair},
      {"bco_pair", [](R r) { return -at::log_sigmoid(r.beta * r.chosen) - at::log_sigmoid(-r.beta * r.rejected); }},
      {"sppo_hard", [](R r) { return at::square(r.chosen - 0.5 / r.beta) + at::square(r.rejected + 0.5 / r.beta); }},
      {"apo_zero", [](R r) { return 1 - at::sigmoid(r.beta * r.chosen) + at::sigmoid(r.beta * r.rejected); }},
      {"apo_down", [](R r) { return at::sigmoid(r.beta * r.chosen) + 1 - at::sigmoid(r.margin()); }},
  };
  return all;
}

constexpr const char* likelihood = "sft";

class DpoLoss final : public PairLoss {
 public:
  explicit DpoLoss(const DpoOptions& options) : PairLoss(2), options_(options) {
    for (const auto& [name, weight] : options.terms) {
      if (name == likelihood) {
        likelihood_ += weight;
        continue;
      }
      const auto found = std::ranges::find(ratio_terms(), name, &std::pair<std::string, Term>::first);
      if (found == ratio_terms().end()) throw InputError("the preference loss \"" + name + "\" is not known");
      terms_.emplace_back(found->second, weight);
    }
  }

  std::string name() const override { return "dpo"; }
  std::vector<std::string> needs() const override { return {reference_name}; }
  bool averages_tokens() const override { return likelihood_ != 0; }

 private:
  Value value_of(const at::Tensor& p, const Batch& batch) const override {
    const at::Tensor ratio = p - named_tensor(batch, reference_name),
                     mean = ratio / at::clamp_min(trained_tokens(batch), 1);
    const Ratios ratios{ratio.select(1, 0), ratio.select(1, 1), mean.select(1, 0),
                        mean.select(1, 1),  options_.beta,      options_.label_smoothing};
    at::Tensor losses = at::zeros_like(ratios.chosen);
    for (const auto& [term, weight] : terms_) losses = losses + weight * term(ratios);
    if (likelihood_ != 0) losses = losses - likelihood_ * token_share(batch) * p.select(1, 0);
    return {losses, options_.beta * ratio, p};
  }

  DpoOptions options_;
  std::vector<std::pair<Term, double>> terms_;
  double likelihood_ = 0;  // weight
};

}  // namespace

std::vector<std::string> dpo_terms() {
  std::vector<std::string> names;
  for (const auto& entry : ratio_terms()) names.push_back(entry.first);
  names.emplace_back(likelihood);
  return names;
}

std::unique_ptr<Loss> dpo_loss(const DpoOptions& options) { return std::make_unique<DpoLoss>(options); }

}  // namespace zero
