#include "zero/library/include/zero/sharded.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "comm/agreement/agreement.h"
#include "comm/object_collectives.h"
#include "comm/sum_tree.h"
#include "zero/library/nn/watched_batch_norm.h"
#include "zero/library/optimizer_options_of.h"
#include "zero/library/same_draws.h"
#include "zero/library/sharded_impl.h"
#include "zero/library/world_impl.h"

namespace zero {
namespace {

MeshShape shape_of(int ranks, int degree) {
  if (degree < 0 || (degree > 0 && ranks % degree != 0))
    throw InputError(text("shard_degree = ", degree, ": must divide the ", ranks, " processes"));
  return MeshShape::hybrid(ranks, degree);
}

}  // namespace

ShardedModel::Impl::Impl(std::shared_ptr<torch::nn::Module> module, const World& world, const ShardOptions& options)
    : module(std::move(module)),
      world(world),
      options(options),
      mesh(*world.impl().ranks, shape_of(world.size(), options.shard_degree), world.impl().host) {
  if (options.stage < 0 || options.stage > 3) throw InputError(text("stage = ", options.stage, ": 0, 1, 2 or 3"));
  if (options.open_groups < 1) throw InputError(text("open_groups = ", options.open_groups, ": at least 1"));
}

// Checkpoints hold buffers as values shared by all ranks. Names include type and shape, which the bytes do not contain.
void ShardedModel::Impl::keep_buffers() {
  std::vector<KeptArray>& kept = sharded->states().kept();
  kept.clear();
  for (const auto& [name, buffer] : module->named_buffers().pairs())
    if (buffer.defined() && buffer.numel() > 0)
      kept.push_back({text("buffer:", name, ", ", buffer.scalar_type(), " ", buffer.sizes()),
                      buffer.detach().contiguous().view({-1}).view(at::kByte)});
}

void ShardedModel::Impl::take_buffers() {
  const at::NoGradGuard no_grad;
  auto kept = sharded->states().kept().begin();
  for (const auto& [name, buffer] : module->named_buffers().pairs()) {
    if (!buffer.defined() || buffer.numel() == 0) continue;
    const at::Tensor values = (kept++)->values.view(buffer.scalar_type()).view(buffer.sizes());
    if (!buffer.is_contiguous()) write_values(buffer, values);
  }
}

void ShardedModel::Impl::drop_step() {
  progress = {.guarded = progress.guarded};
  if (sharded) sharded->drop_step();
}

ShardedModule& ShardedModel::Impl::divided(const char* call) const {
  if (!sharded || !trains)
    throw InputError(std::string(call) +
                     ": the model has no optimizer: model.optimizer(...) makes one, before the first forward");
  return *sharded;
}

namespace {

/// The mean over no rows is NaN, but loss * rows must not be NaN.
void drop_not_finite(const at::Tensor& loss) {
  const at::NoGradGuard no_grad;
  const at::Tensor value = loss.detach();
  value.masked_fill_(value.isfinite().logical_not_(), 0);
}

/// Rounds a weight to the gradients' type, so that gradients are multiplied and divided by the same number.
double in_type_of(at::ScalarType type, double weight) {
  return type == at::kBFloat16 ? double(float(c10::BFloat16(float(weight)))) : weight;
}

/// The weight of the current backward, for gathers that sum gradients during it (World::gather()).
class BackwardWeight {
 public:
  BackwardWeight(World::Impl& world, double weight) : world_(world) { world_.backward_weight = weight; }
  ~BackwardWeight() { world_.backward_weight = 1; }
  BackwardWeight(const BackwardWeight&) = delete;
  BackwardWeight& operator=(const BackwardWeight&) = delete;

 private:
  World::Impl& world_;
};

}  // namespace

void ShardedModel::Impl::backward(const torch::Tensor& loss, std::optional<double> weight) {
  ShardedModule& model = divided("backward()");
  model.check_all_take_part("backward()");
  if (!progress.guarded && progress.micro_batches > 1 && progress.done > 0 && !progress.is_complete())
    throw InputError(
        "backward() in the middle of an accumulation: each of its micro-batches has its model.accumulate(n)");
  if (progress.is_complete())
    throw InputError(
        "backward() twice without a step of the optimizer between: give each micro-batch of a step its "
        "model.accumulate(n)");
  if (progress.done > 0 && progress.weighted != weight.has_value())
    throw InputError("backward(): all micro-batches of a step have a weight, or none has");
  const double own = in_type_of(options.precision.value_or(model.units().type()), weight.value_or(1));
  if (!(own >= 0 && std::isfinite(own)))
    throw InputError(text("backward(): a weight of ", own, ": at least 0, and finite"));
  if (!std::exchange(draws_are_checked, true)) warn_of_same_draws(*module, world);
  try {
    const BackwardWeight of_gathers(world.impl(), own);
    model.backward(loss, own, {progress.done == 0, progress.is_last()});
  } catch (...) {
    progress = {.guarded = progress.guarded};
    throw;
  }
  if (own == 0) drop_not_finite(loss);
  progress.weighted = weight.has_value();
  progress.weight += own;
  ++progress.done;
}

double ShardedModel::Impl::total_weight() {
  const at::Tensor sum = at::full({1}, progress.weight, at::kDouble);
  mesh.host().all_reduce(sum, {at::kDouble, false}, {Phase::optimizer});
  return above_0(sum.item<double>());
}

double ShardedModel::Impl::above_0(double weight) {
  if (weight > 0) return weight;
  drop_step();
  throw InputError(
      "the micro-batches of all processes have the weight 0: there is no gradient, and the step is given up");
}

namespace {

/// Formats a number with the fewest digits that read back as the same number.
std::string shortest(double number) {
  std::array<char, 32> digits{};
  return {digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr};
}

/// A process's arguments for a step, in the form in which they are exchanged.
struct StepTerms {
  double lr, max_norm, weighted, weight;

  static constexpr std::size_t numbers = 4;
  /// For example "the learning rate 0.5, clip(1) and micro-batches without weights".
  std::string describe() const {
    return text("the learning rate ", shortest(lr), ", clip(", shortest(max_norm), ") and micro-batches ",
                weighted ? "with" : "without", " weights");
  }
  bool agrees_with(const StepTerms& o) const { return lr == o.lr && max_norm == o.max_norm && weighted == o.weighted; }
};
static_assert(sizeof(StepTerms) == StepTerms::numbers * sizeof(std::int64_t));

/// Sums in the order of an all-reduce.
double sum_of_weights(const std::vector<StepTerms>& all) {
  std::vector<const void*> weights;
  for (const StepTerms& terms : all) weights.push_back(&terms.weight);
  double sum = 0;
  sum_tree({weights, at::kDouble}, {&sum, at::kDouble}, 1, at::kDouble);
  return sum;
}

}  // namespace

// Different rates would update each part differently. One exchange also carries the weights.
double ShardedModel::Impl::agree_on_step(double lr) {
  using Numbers = std::array<std::int64_t, StepTerms::numbers>;
  const StepTerms mine{lr, max_norm, double(progress.weighted), progress.weight};
  const std::vector<std::int64_t> numbers =
      all_gather_numbers(mesh.host(), std::bit_cast<Numbers>(mine), {Phase::optimizer});
  std::vector<StepTerms> all(std::size_t(world.size()));
  std::memcpy(all.data(), numbers.data(), all.size() * sizeof(StepTerms));
  for (std::size_t r = 1; r < all.size(); ++r)
    if (!all[r].agrees_with(all[0])) {
      drop_step();
      throw InputError(text("optimizer.step() on process ", r, " has ", all[r].describe(), ", on process 0 ",
                            all[0].describe(), ": all processes take the same"));
    }
  return above_0(sum_of_weights(all));
}

namespace {

/// Group rates scale with `lr` relative to the settings' rate, if that is above 0.
double schedule_at(double settings_lr, double lr) { return settings_lr > 0 ? lr / settings_lr : 1; }

}  // namespace

// For loops that ignore Step::taken; one warning covers consecutive skips.
void ShardedModel::Impl::tell_skipped(const StepResult& result) {
  if (!result.taken && !skips && world.is_main())
    log_warning(
        "optimizer.step() updates nothing after step ", sharded->states().steps_done(),
        ": the norm of the gradient is ", result.norm,
        ". Steps are skipped until it is finite, without a further warning: look at the loss, and at Step::taken");
  skips = !result.taken;
}

Step ShardedModel::Impl::step(double lr) {
  ShardedModule& model = divided("step()");
  if (progress.done == 0) throw InputError("optimizer.step() without a backward() before it");
  if (!progress.is_complete()) return {};
  const double total = agree_on_step(lr);
  const bool guarded = progress.guarded;
  progress = {.guarded = guarded};
  const StepResult result =
      model.update({.lr = lr, .max_norm = max_norm, .loss_scale = total, .schedule = schedule_at(optimizer.lr, lr)});
  tell_skipped(result);
  if (options.buffers == Buffers::of_main) share_buffers(*module, mesh.ranks());
  return {result.taken, result.norm};
}

ShardedModel::ShardedModel(std::shared_ptr<torch::nn::Module> module, const World& world, const ShardOptions& options)
    : impl_(std::make_shared<Impl>(std::move(module), world, options)) {}

ShardedModel::~ShardedModel() = default;
ShardedModel::ShardedModel(ShardedModel&&) noexcept = default;
ShardedModel& ShardedModel::operator=(ShardedModel&&) noexcept = default;

ShardedOptimizer ShardedModel::optimizer(const OptimizerSettings& settings) {
  if (impl_->sharded)
    throw InputError(impl_->trains ? "model.optimizer(...): the model has one already"
                                   : "model.optimizer(...) after the first forward, or after freeze(), save() or "
                                     "another call that divides the parameters: they are without states of an "
                                     "optimizer; make it before");
  impl_->optimizer = optimizer_options_of(settings);
  impl_->trains = true;
  try {
    impl_->divide();
  } catch (...) {
    impl_->trains = false;
    throw;
  }
  return ShardedOptimizer(impl_);
}

ShardedOptimizer ShardedModel::optimizer() const {
  impl_->divided("optimizer()");
  return ShardedOptimizer(impl_);
}

void ShardedModel::prepare() {
  if (!impl_->sharded) impl_->divide();
}

struct Accumulation::Impl {
  std::weak_ptr<ShardedModel::Impl> model;
  StepProgress before, begun;
};
Accumulation::Accumulation(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
// A micro-batch without a backward() does not count.
Accumulation::~Accumulation() {
  const auto model = impl_->model.lock();
  if (!model) return;
  StepProgress& progress = model->progress;
  progress.guarded = false;
  if (progress.done == impl_->begun.done && progress.micro_batches == impl_->begun.micro_batches)
    progress.micro_batches = impl_->before.micro_batches;
}
bool Accumulation::is_last() const { return impl_->begun.is_last(); }

Accumulation ShardedModel::accumulate(int micro_batches, bool ends) {
  StepProgress& progress = impl_->progress;
  if (micro_batches < 1) throw InputError(text("accumulate(", micro_batches, "): at least 1"));
  if (progress.guarded) throw InputError("accumulate(): the last micro-batch's is still there; it ends with its scope");
  if (progress.is_complete())
    throw InputError(
        "accumulate(): the step's micro-batches are complete, and the optimizer has not stepped: call optimizer.step() in every micro-batch");
  if (progress.done > 0 && progress.micro_batches != micro_batches)
    throw InputError(text("accumulate(", micro_batches, ") in a step of ", progress.micro_batches, " micro-batches"));
  const StepProgress before = progress;
  progress.micro_batches = ends ? progress.done + 1 : micro_batches;
  progress.guarded = true;
  return Accumulation(std::make_unique<Accumulation::Impl>(Accumulation::Impl{impl_, before, progress}));
}

void ShardedModel::backward(const torch::Tensor& loss) { impl_->backward(loss, std::nullopt); }
void ShardedModel::backward(const torch::Tensor& loss, double weight) { impl_->backward(loss, weight); }

void ShardedModel::for_each_parameter(const Visit& visit) {
  prepare();
  impl_->sharded->for_each_parameter(visit);
}

void ShardedModel::for_each_gradient(const Visit& visit) {
  ShardedModule& model = impl_->divided("for_each_gradient()");
  if (!impl_->progress.is_complete())
    throw InputError("for_each_gradient(): after the last backward() of a step, and before its step()");
  const double total = impl_->total_weight();
  model.for_each_gradient([&](const std::string& name, const at::Tensor& sum) { visit(name, sum / total); });
}

const World& ShardedModel::world() const { return impl_->world; }
int ShardedModel::stage() const { return impl_->stage(); }
int ShardedModel::Impl::stage() const {
  StatesOptions states;
  states.plan = ShardPlan::for_stage(options.stage);
  return plan_on(mesh.shape(), states).stage();
}

namespace {

std::shared_ptr<ShardedModel::Impl> model_of(const std::weak_ptr<void>& handle) {
  const auto model = std::static_pointer_cast<ShardedModel::Impl>(handle.lock());
  if (!model) throw InputError("the optimizer's model is gone: keep the model for as long as its optimizer is used");
  return model;
}

}  // namespace

void ShardedOptimizer::clip(double max_norm) {
  if (!(max_norm >= 0)) throw InputError(text("clip(", max_norm, "): at least 0"));
  model_of(model_)->max_norm = max_norm;
}
Step ShardedOptimizer::step() { return step(lr()); }
Step ShardedOptimizer::step(double lr) {
  if (!(lr >= 0 && std::isfinite(lr)))
    throw InputError(text("step(", lr, "): a learning rate is at least 0, and finite"));
  return model_of(model_)->step(lr);
}
double ShardedOptimizer::lr() const { return model_of(model_)->optimizer.lr; }
std::int64_t ShardedOptimizer::steps_taken() const {
  return model_of(model_)->divided("steps_taken()").states().steps_done();
}
NamedTensors ShardedOptimizer::states(const std::string& parameter) const {
  return model_of(model_)->optimizer_states(parameter);
}
void ShardedOptimizer::set_states(const std::string& parameter, const NamedTensors& states) {
  model_of(model_)->set_optimizer_states(parameter, states);
}
void ShardedOptimizer::set_steps_taken(std::int64_t steps) {
  const auto model = model_of(model_);
  ModelStates& states = model->divided("set_steps_taken()").states();
  meet(model->world, Phase::load);
  const std::vector<std::int64_t> all = all_gather_number(*model->world.impl().host, steps);
  for (std::size_t rank = 1; rank < all.size(); ++rank)
    if (all[rank] != all[0])
      throw InputError(text("set_steps_taken(): process ", rank, " gives ", all[rank], " and process 0 gives ", all[0],
                            ": all processes give the same"));
  if (steps < 0) throw InputError(text("set_steps_taken(", steps, "): at least 0"));
  states.resume(steps);
}

}  // namespace zero
