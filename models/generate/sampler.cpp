#include "models/generate/sampler.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <unordered_set>

#include "base/error.h"
#include "base/log.h"
#include "models/initial_weights.h"

namespace zero {
namespace {

constexpr double nearly_greedy = 1e-5;  // below it, quotients overflow fp32, and only the likeliest token is ever drawn

}  // namespace

void validate(const SamplingOptions& options) {
  const auto demand = [](bool holds, const char* name, auto value, const char* rule) {
    if (!holds) throw InputError(text(name, " ", value, ": must be ", rule));
  };
  demand(options.temperature >= 0 && std::isfinite(options.temperature), "temperature", options.temperature,
         "0 (greedy) or above");
  demand(options.top_k >= 0, "top-k", options.top_k, "0 (no limit) or above");
  demand(options.top_p > 0 && options.top_p <= 1, "top-p", options.top_p, "above 0 and at most 1");
  demand(options.repetition_penalty > 0 && std::isfinite(options.repetition_penalty), "repetition-penalty",
         options.repetition_penalty, "above 0");
}

std::int32_t Sampler::next(std::span<const float> logits, std::span<const std::int32_t> history) {
  logits_.assign(logits.begin(), logits.end());
  penalize(history);
  if (options_.temperature < nearly_greedy)
    return static_cast<std::int32_t>(std::max_element(logits_.begin(), logits_.end()) - logits_.begin());
  candidates_.resize(logits_.size());
  for (std::size_t i = 0; i < logits_.size(); ++i)
    candidates_[i] = {static_cast<float>(logits_[i] / options_.temperature), static_cast<std::int32_t>(i)};
  keep_top_k();
  return draw();
}

/// CTRL (Keskar et al. 2019): divides logits of tokens seen before, or multiplies negative ones, once per
/// token.
void Sampler::penalize(std::span<const std::int32_t> history) {
  if (options_.repetition_penalty == 1) return;
  const auto penalty = static_cast<float>(options_.repetition_penalty);
  for (const std::int32_t id : std::unordered_set<std::int32_t>(history.begin(), history.end())) {
    float& logit = logits_.at(static_cast<std::size_t>(id));
    logit = logit < 0 ? logit * penalty : logit / penalty;
  }
}

/// Leaves the candidates sorted by probability, highest first.
void Sampler::keep_top_k() {
  const auto likelier = [](const Candidate& a, const Candidate& b) {
    return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
  };
  const auto keep = static_cast<std::ptrdiff_t>(options_.top_k);
  if (keep > 0 && keep < std::ssize(candidates_)) {
    std::nth_element(candidates_.begin(), candidates_.begin() + keep, candidates_.end(), likelier);
    candidates_.resize(static_cast<std::size_t>(keep));
  }
  std::sort(candidates_.begin(), candidates_.end(), likelier);
}

std::int32_t Sampler::draw() {
  std::vector<double> weights(candidates_.size());
  for (std::size_t i = 0; i < weights.size(); ++i)
    weights[i] = std::exp(static_cast<double>(candidates_[i].logit) - candidates_.front().logit);
  double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  if (options_.top_p < 1) {
    // keep the fewest candidates that together reach top_p, at least one
    double reached = 0;
    std::size_t kept = 0;
    while (kept < weights.size() && reached < options_.top_p * total) reached += weights[kept++];
    weights.resize(kept);
    total = reached;
  }
  float uniform = 0;
  draw_uniform(options_.seed, text("sampling row ", row_), draws_++, 1, 1.0f, &uniform);
  double place = (uniform * 0.5 + 0.5) * total;
  for (std::size_t i = 0; i < weights.size(); ++i)
    if ((place -= weights[i]) < 0) return candidates_[i].id;
  return candidates_[weights.size() - 1].id;
}

}  // namespace zero
