#include "zero/train/first_step_dump.h"

#include <ATen/ATen.h>

#include "models/model.h"
#include "models/safetensors_writer.h"

namespace zero {

void FirstStepDump::add_logits(const Pass& pass) {
  Communicator& communicator = engine_.host();
  const at::Tensor logits = engine_.evaluate(pass, [](Unit& head, const at::Tensor& x) { return logits_of(head, x); }).to(at::kCPU, at::kFloat).contiguous();
  const at::Tensor sums = at::empty({2}, at::kDouble);
  sums[0].fill_(engine_.evaluate(pass).to(at::kCPU, at::kDouble));
  sums[1].fill_((pass.batch->targets != ignored_target).sum().to(at::kCPU, at::kDouble));
  communicator.all_reduce(sums, {at::kDouble, false});
  loss_sum_ += sums[0].item<double>();
  trained_ += sums[1].item<std::int64_t>();
  // Ranks hold neighbouring windows of the micro-batch, so the gathered order is the windows'.
  const at::Tensor all = at::empty({communicator.size() * logits.size(0), logits.size(1), logits.size(2)}, at::kFloat);
  communicator.all_gather_into(all.view({-1}), logits.view({-1}));
  if (communicator.rank() == 0) logits_.push_back(all);
}

void FirstStepDump::finish() {
  std::vector<std::pair<std::string, at::Tensor>> tensors;
  engine_.export_gradients([&](const TensorSpec& spec, const at::Tensor& value) {
    if (engine_.communicator().rank() == 0) tensors.emplace_back("grad." + spec.name, value.to(at::kFloat).clone());
  });
  if (engine_.communicator().rank() != 0) return;
  tensors.emplace_back("logits", at::cat(logits_));
  tensors.emplace_back("loss", at::full({}, loss_sum_ / double(trained_), at::kFloat));
  std::vector<SafetensorsSpec> specs;
  for (const auto& [name, value] : tensors) specs.push_back({name, at::kFloat, value.sizes().vec()});
  SafetensorsWriter writer(path_, specs);
  for (const auto& [name, value] : tensors) writer.append(value);
  writer.finish();
  logits_.clear();
}

}  // namespace zero
