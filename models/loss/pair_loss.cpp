#include "models/loss/pair_loss.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>

#include "models/undivided.h"

namespace zero {

std::vector<std::string> PairLoss::figures() const {
  return {"rewards/chosen",     "rewards/rejected", "rewards/margins",
          "rewards/accuracies", "logps/chosen",     "logps/rejected"};
}

SequenceOutcome PairLoss::outcome(const at::Tensor& log_probabilities, const Batch& batch) const {
  const Undivided sums;
  const at::AutoGradMode graph(true);
  const at::Tensor p = log_probabilities.detach().requires_grad_();
  const Value found = value_of(p, batch);
  const at::Tensor weighted = batch.row_weights.defined() ? found.losses * batch.row_weights : found.losses;
  const at::Tensor value = weighted.sum(), gradient = torch::autograd::grad({value}, {p}).front();

  const at::NoGradGuard done;
  const at::Tensor rewards = found.rewards.detach().sum(0), shown = found.shown.detach().sum(0);
  const at::Tensor right = (found.rewards.select(1, 0) > found.rewards.select(1, 1)).to(rewards.scalar_type()).sum();
  return {value.detach(), gradient,
          at::stack({rewards[0], rewards[1], rewards[0] - rewards[1], right, shown[0], shown[1]})};
}

}  // namespace zero
