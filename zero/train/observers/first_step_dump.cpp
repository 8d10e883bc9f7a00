#include "zero/train/observers/first_step_dump.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "base/log.h"
#include "comm/agreement/agreement.h"
#include "comm/object_collectives.h"
#include "models/decoder/decoder.h"
#include "models/formats/safetensors_writer.h"
#include "models/model.h"

namespace zero {
namespace {

// Pads [B, T, vocabulary] with zeros at the end of each row, up to `length`.
at::Tensor lengthened(const at::Tensor& logits, std::int64_t length) {
  return at::constant_pad_nd(logits, {0, 0, 0, length - logits.size(1)}, 0).contiguous();
}

std::int64_t longest_row(const at::Tensor& logits, Communicator& communicator) {
  const std::vector<std::int64_t> all = all_gather_number(communicator, logits.size(1), {Phase::other});
  return *std::max_element(all.begin(), all.end());
}

void write(const std::string& path, const std::vector<std::pair<std::string, at::Tensor>>& tensors) {
  std::vector<SafetensorsSpec> specs;
  for (const auto& [name, value] : tensors) specs.push_back({name, at::kFloat, value.sizes().vec()});
  SafetensorsWriter writer(path, specs);
  for (const auto& [name, value] : tensors) writer.append(value);
  writer.finish();
}

}  // namespace

void FirstStepDump::before_step(Step& step) {
  if (path_.empty() || step.index != 0 || step.passed_over) return;
  const auto context_of = batches_.contexts(step.index);
  Batch batch;
  for (std::int64_t a = 0; a < batches_.loader().micro_batches(); ++a) {
    batch = {};
    add_logits(context_of(a, batch));
  }
}

void FirstStepDump::gradients_ready(const Step& step) {
  if (!path_.empty() && step.index == 0) finish(step.denominator);
}

void FirstStepDump::add_logits(const ForwardContext& context) {
  Communicator& communicator = engine_.host();
  const at::Tensor logits = engine_.evaluate(context, logits_of).to(at::kCPU, at::kFloat).contiguous();
  const at::Tensor sum = engine_.evaluate(context).to(at::kCPU, at::kDouble).view({1}).clone();
  if (engine_.mesh().index(axes::tokens.others()) > 0) sum.zero_();  // another rank has the same tokens
  communicator.all_reduce(sum, {at::kDouble, false});
  loss_sum_ += sum.item<double>();
  // Ranks hold neighbouring rows of the micro-batch, so the gathered order is the rows'.
  const at::Tensor even = lengthened(logits, longest_row(logits, communicator));
  const at::Tensor all = at::empty({communicator.size(), even.size(0), even.size(1), even.size(2)}, at::kFloat);
  communicator.all_gather_into(all.view({-1}), even.view({-1}));
  if (communicator.rank() > 0) return;
  for (int rank = 0; rank < communicator.size(); ++rank)
    if (engine_.mesh().shape().index(rank, axes::rows.others()) == 0) logits_.push_back(all[rank].clone());
}

void FirstStepDump::finish(double denominator) {
  std::vector<std::pair<std::string, at::Tensor>> tensors;
  engine_.export_gradients([&](const TensorSpec& spec, const at::Tensor& value) {
    if (engine_.host().rank() == 0) tensors.emplace_back("grad." + spec.name, value.to(at::kFloat).clone());
  });
  if (engine_.host().rank() == 0) {
    std::int64_t longest = 0;
    for (const at::Tensor& part : logits_) longest = std::max(longest, part.size(1));
    for (at::Tensor& part : logits_) part = lengthened(part, longest);
    tensors.emplace_back("logits", at::cat(logits_));
    tensors.emplace_back("loss", at::full({}, loss_sum_ / denominator, at::kFloat));
  }
  const auto failure = agreed_failure_of([&] { on_first(engine_.host(), [&] { write(path_, tensors); }); });
  if (failure && engine_.host().rank() == 0)  // a failed dump does not end the run
    log_warning("metrics.dump_first_step is given up: ", *failure);
  logits_.clear();
}

}  // namespace zero
