// The step of the optimizers.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>

#include "base/activity_clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/memory_tracker.h"
#include "zero/core/kernels/reduce_kernels.h"
#include "zero/core/model_states.h"
#include "zero/optim/clip.h"
#include "zero/optim/kernels/device_step.h"

namespace zero {
namespace {

/// Returns true if an element's update depends only on elements of its own block.
bool is_elementwise(const Optimizer& optimizer) {
  return optimizer.passes() == 1 && !optimizer.by_tensor() && !optimizer.transforms_matrices();
}

std::vector<double> values_of(const at::Tensor& numbers) {
  const at::Tensor values = numbers.to(at::kCPU, at::kDouble).contiguous();
  return {values.const_data_ptr<double>(), values.const_data_ptr<double>() + values.numel()};
}

/// Blocks of states must be those of full tensors.
void require_whole_blocks(const ParameterGroup& group) {
  for (const auto& shard : group.states())
    for (int t = 0; t < int(shard->layout().tensors().size()); ++t) {
      const TensorSpec& tensor = shard->layout().spec(t);
      const std::int64_t block = largest_grain(shard->store().states());
      if (is_cut_between(tensor, block)) continue;
      throw InputError(text("optimizer.name = \"", shard->optimizer().name(), "\": keeps blocks of ", block,
                            " numbers, and [parallel] tensor = ", tensor.cut->place.ranks, " cuts ", tensor.name, " ",
                            shape_text(tensor.full().shape), " inside one"));
    }
}

}  // namespace

void ModelStates::start_optimizers() {
  CategoryScope scope(MemoryCategory::optimizer);
  optimizers_.check_groups();
  statistics_.clear();
  optimizer_tensors_.resize(std::size_t(optimizers_.size()));
  for (const auto& group : groups_.groups) require_whole_blocks(*group);  // of all stages, so that all ranks agree
  for (int i = 0; i < optimizers_.size(); ++i) {
    if (options_.sums_in_order && !is_elementwise(optimizers_[i]))
      throw InputError("optimizer.name = \"" + optimizers_[i].name() +
                       "\": sums over whole tensors, in an order that depends on the ranks, which job.reproducible = "
                       "\"ranks\" does not allow; adamw, adamw8bit, sgd and lion sum none");
    std::vector<std::vector<std::int64_t>> shapes;
    for (const TensorSpec& tensor : optimizer_tensors_[std::size_t(i)]) shapes.push_back(tensor.shape);
    statistics_.emplace_back(optimizers_[i], shapes, states_device());
    optimizers_[i].start(statistics_.back());
  }
}

at::Device ModelStates::states_device() const {
  return options_.offload.optimizer ? at::Device(at::kCPU) : options_.device;
}

bool ModelStates::steps_on_device() const {
  if (!on_device() || options_.offload.optimizer || options_.sums_in_order) return false;
  for (int i = 0; i < optimizers_.size(); ++i)
    if (!optimizers_[i].reads_device_numbers()) return false;
  return true;
}

// StepNumbers include bias corrections, which belong to the one optimizer that reads the numbers.
const OptimizerOptions& ModelStates::options_with_device_numbers() const {
  for (int i = 0; i < optimizers_.size(); ++i)
    if (optimizers_[i].reads_device_numbers()) return optimizers_[i].options();
  return options_.optimizer;
}

// On a GPU, a step that overflowed is issued but not taken.
std::int64_t ModelStates::steps_done() const {
  return !steps_on_device() ? steps_done_ : std::int64_t(numbers_[StepNumbers::steps].item<double>());
}

void ModelStates::restart(WeightSource& source) {
  load(source);
  start_optimizers();
  steps_done_ = 0;
  if (on_device()) numbers_[StepNumbers::steps].fill_(0.0);
}

void ModelStates::resume(std::int64_t steps_done) {
  groups_.end_passes();
  for (const auto& group : groups_.groups)
    if (group->is_here() && (group->spec().trainable || options_.save_frozen)) group->weights().gather_updated();
  steps_done_ = steps_done;
  if (on_device()) numbers_[StepNumbers::steps].fill_(double(steps_done));
}

void ModelStates::sum_squares_on_device() {
  const at::Tensor sum = numbers_.narrow(0, StepNumbers::sum_of_squares, 1);
  sum.zero_();
  for (const ParameterGroup* group : groups_.trained())
    device_add_sum_of_squares(group->gradient().part(), norm_scratch_, numbers_);
  norm_ranks().all_reduce(sum, {at::kDouble, false}, {Phase::optimizer});
}

// The blocks are the same however gradients are divided over ranks.
double ModelStates::exact_norm() {
  ExactSum sum;
  for (const ParameterGroup* group : groups_.trained()) add_squares(sum, group->gradient().part().to(at::kCPU));
  ExactSum::Parts parts = sum.parts();
  const at::Tensor mine = at::from_blob(parts.data(), {std::int64_t(parts.size())}, at::kLong);
  const at::Tensor all = mine.to(options_.device);
  norm_ranks().all_reduce(all, {}, {Phase::optimizer});
  mine.copy_(all);
  return std::sqrt(ExactSum::of(parts).value());
}

double ModelStates::gradient_norm() {
  if (options_.sums_in_order) return exact_norm();
  if (on_device()) {
    sum_squares_on_device();
    return std::sqrt(numbers_[StepNumbers::sum_of_squares].item<double>());
  }
  double sum = 0;
  for (const ParameterGroup* group : groups_.trained()) sum += sum_of_squares(group->gradient().part()).sum_of_squares;
  at::Tensor total = at::full({1}, sum, at::kDouble);
  norm_ranks().all_reduce(total, {at::kDouble, false}, {Phase::optimizer});
  return std::sqrt(total.item<double>());
}

StepResult ModelStates::judge(const UpdateRule& rule, const at::Tensor& losses) {
  StepResult result{values_of(losses), gradient_norm() / rule.loss_scale, true, {}};
  result.taken = std::isfinite(result.norm);
  return result;
}

void ModelStates::judge_on_device(const UpdateRule& rule) {
  sum_squares_on_device();
  const OptimizerOptions& options = options_with_device_numbers();
  device_judge_step(numbers_, {rule.max_norm, rule.loss_scale, options.beta1, options.beta2});
}

std::vector<UpdateContext> ModelStates::begin_step(const UpdateRule& rule, double gradient_factor) {
  ++steps_done_;
  // An optimizer may read the StepNumbers on the device even if the host has judged the step.
  if (on_device() && !steps_on_device())
    numbers_.copy_(step_numbers(step_factors(options_with_device_numbers(), steps_done_, rule.lr, gradient_factor)));
  std::vector<UpdateContext> contexts;
  for (int i = 0; i < optimizers_.size(); ++i) {
    UpdateContext context{{optimizers_[i].options(), gradient_factor, steps_done_}};
    context.lr = rule.lr;
    context.own_lr = optimizers_.own_lr(i, rule.lr, rule.schedule);
    context.schedule = rule.schedule;
    context.statistics = &statistics_[std::size_t(i)];
    context.numbers = &numbers_;
    contexts.push_back(context);
  }
  return contexts;
}

void ModelStates::begin_pass(std::vector<UpdateContext>& contexts, int pass) {
  for (UpdateContext& context : contexts) {
    context.pass = pass;
    context.statistics->all_sums().zero_();
  }
}

void ModelStates::conclude_pass(const std::vector<UpdateContext>& contexts) {
  for (int i = 0; i < optimizers_.size(); ++i) {
    const UpdateContext& context = contexts[std::size_t(i)];
    if (context.pass >= optimizers_[i].passes()) continue;
    if (context.pass + 1 < optimizers_[i].passes()) sum_statistics(context.statistics->all_sums());
    optimizers_[i].conclude(context);
    if (context.pass == 0 && optimizers_[i].transforms_matrices())
      transform_matrices(optimizers_[i], groups_.trained(), exchange_ranks());
  }
}

// If states are not sharded, every rank has summed over all elements of its stage, or over all of its slices.
void ModelStates::sum_statistics(const at::Tensor& sums) {
  if (sums.numel() == 0 || statistics_ranks().size() == 1) return;
  const at::Tensor on_device = sums.to(options_.device);  // `sums` is on the host if states are offloaded from a GPU
  statistics_ranks().all_reduce(on_device, {at::kDouble, false}, {Phase::optimizer});
  if (!on_device.is_same(sums)) sums.copy_(on_device);
}

// If states are not sharded, each rank of the tensor axis has summed over whole parameters.
void ModelStates::count_whole_once(const std::vector<UpdateContext>& contexts) {
  if (!slices_ || options_.plan.optimizer == Placement::sharded || mesh_.index(MeshAxis::tensor) == 0) return;
  for (const UpdateContext& context : contexts) context.statistics->all_sums().zero_();
}

ExchangeRanks ModelStates::exchange_ranks() {
  const Placement placement = options_.plan.optimizer;
  if (placement == Placement::sharded || !slices_)
    return {gathers(), mesh_.along(replicas_), placement, options_.device, mesh_.size(MeshAxis::tensor)};
  return {mesh_.along(MeshAxis::tensor), mesh_.along(axes::tokens), placement, options_.device,
          mesh_.size(MeshAxis::tensor)};
}

std::vector<std::pair<std::string, double>> ModelStates::reports(const std::vector<UpdateContext>& contexts) const {
  std::vector<std::pair<std::string, double>> found;
  for (int i = 0; i < optimizers_.size(); ++i) {
    const UpdateContext& context = contexts[std::size_t(i)];
    for (auto& number : optimizers_[i].report(context)) found.push_back(number);
    if (optimizers_[i].transforms_matrices())
      found.emplace_back(optimizers_[i].name() + "_matrices", double(context.statistics->tensors()));
  }
  return found;
}

PendingStepResult ModelStates::result_on_device(const at::Tensor& losses) {
  numbers_.narrow(0, StepNumbers::loss, 1).copy_(losses.sum().view({1}));
  at::Tensor pinned = at::empty({StepNumbers::count}, at::TensorOptions().dtype(at::kDouble).pinned_memory(true));
  pinned.copy_(numbers_, /*non_blocking=*/true);
  Event sent(options_.device);
  sent.set();
  return PendingStepResult(std::move(pinned), std::move(sent), &mesh_.ranks().failures());
}

// All ranks run the same passes, whatever they hold.
PendingStepResult ModelStates::update(const UpdateRule& rule, const at::Tensor& losses) {
  const ActivityScope scope(Activity::kernels);
  const at::NoGradGuard no_grad;
  groups_.end_passes();
  mesh_.ranks().failures().check();
  const bool on_device = steps_on_device();
  StepResult result;
  double gradient_factor = 1.0;  // unused if a GPU judges the step
  if (on_device) {
    judge_on_device(rule);
  } else {
    result = judge(rule, losses);
    if (!result.taken) return PendingStepResult(std::move(result));
    gradient_factor = clip_factor(result.norm, rule.max_norm) / rule.loss_scale;
  }
  std::vector<UpdateContext> contexts = begin_step(rule, gradient_factor);
  std::vector<ParameterGroup*> trained = groups_.trained();
  const auto slices = std::stable_partition(trained.begin(), trained.end(),
                                            [](const ParameterGroup* group) { return !group->spec().cut; });
  const auto whole = std::size_t(slices - trained.begin());
  int most = 0;
  for (int i = 0; i < optimizers_.size(); ++i) most = std::max(most, optimizers_[i].passes());
  for (int pass = 0; pass < most; ++pass) {
    begin_pass(contexts, pass);
    for (std::size_t g = 0; g < trained.size(); ++g) {
      if (g + 1 < trained.size() && pass < trained[g + 1]->passes()) trained[g + 1]->prefetch_update(pass);
      if (pass < trained[g]->passes()) trained[g]->update(contexts);
      if (pass + 1 == trained[g]->passes()) trained[g]->weights().gather_updated();
      if (g + 1 == whole) count_whole_once(contexts);
    }
    conclude_pass(contexts);
  }
  if (on_device) return rule.reports ? result_on_device(losses) : PendingStepResult(StepResult{});
  result.optimizer = reports(contexts);
  return PendingStepResult(std::move(result));
}

}  // namespace zero
