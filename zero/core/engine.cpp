#include "zero/core/engine.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/AutogradState.h>
#include <c10/core/CachingDeviceAllocator.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/log.h"
#include "base/memory_tracker.h"
#include "offload/kernels/device_step.h"
#include "offload/quantized/nf4.h"

namespace zero {

Engine::Engine(Chain chain, Communicator& communicator, const EngineOptions& options)
    : chain_(std::move(chain)),
      communicator_(communicator),
      options_(options),
      gather_stream_(options.device, true),
      reduce_stream_(options.device, true) {
  ZERO_CHECK(chain_.size() >= 2, "a chain has at least a first unit and a head");
  // The backward hooks then run on the thread that calls backward, which owns the rank's communicators.
  c10::AutogradState::get_tls_state().set_multithreading_enabled(false);
  split_ranks();
  make_groups();
  start_optimizers();
  if (on_device()) {
    numbers_ = at::zeros({StepNumbers::count}, at::TensorOptions().dtype(at::kDouble).device(options_.device));
    norm_scratch_ = at::zeros({device_norm_blocks}, numbers_.options());
  }
  is_open_.assign(chain_.size(), false);
  is_collected_.assign(chain_.size(), false);
  for (int u = 0; u < int(chain_.size()); ++u)
    bodies_.push_back([this, u](const at::Tensor& x) { return chain_[u]->forward(x, *context_); });
}

Engine::~Engine() = default;

RankDivision divide_ranks(const EngineOptions& options, int ranks) {
  const int degree = options.shard_degree == 0 ? ranks : options.shard_degree;
  if (degree < 1 || ranks % degree != 0)
    throw InputError(text("zero.shard_degree = ", options.shard_degree, ": must divide the number of ranks, ", ranks));
  options.plan.stage();
  // One rank holds everything: nothing is sharded, gathered or copied, unless weights live elsewhere.
  if (degree == 1 && !options.offload.weights) return {ShardPlan::for_stage(0), ranks, 1};
  if (options.plan.stage() == 0) return {options.plan, ranks, 1};
  return {options.plan, degree, ranks / degree};
}

void Engine::split_ranks() {
  const RankDivision division = divide_ranks(options_, communicator_.size());
  options_.plan = division.plan;
  if (division.replicas > 1) {
    shards_ = communicator_.split(communicator_.rank() / division.sharing, communicator_.rank());
    replicas_ = communicator_.split(communicator_.rank() % division.sharing, communicator_.rank());
  }
  Communicator& sharing = shards_ ? *shards_ : communicator_;
  if (options_.overlap && sharing.size() > 1) reductions_ = sharing.split(0, sharing.rank());
}

bool Engine::quantized(const GroupSpec& spec) const {
  return options_.quantize_frozen && quantizes(spec, int(chain_.size()));
}

// For sizes only: it has no device.
Nf4Codec Engine::codec_of(const FlatLayout& layout, bool sharded) const {
  return Nf4Codec(layout, sharded ? layout.shards() : 1, {options_.precision.compute, options_.quantize_scales});
}

void Engine::make_buffers(const std::vector<GroupSpec>& specs, const std::vector<FlatLayout>& layouts) {
  const std::int64_t element = c10::elementSize(options_.precision.compute);
  const bool parameters_sharded = options_.plan.parameters == Placement::sharded;
  const BufferSizes sizes = buffer_sizes(chain_, specs, layouts,
                                         {element, options_.keep_frozen, options_.overlap, options_.quantize_frozen,
                                          parameters_sharded, options_.quantize_scales});
  reserve(specs, layouts, sizes);
  Communicator& gathers = shards_ ? *shards_ : communicator_;
  Communicator& sums = reductions_ ? *reductions_ : gathers;
  if (parameters_sharded || options_.quantize_frozen)
    gather_buffers_ = std::make_unique<BufferPool>(gathers, sizes.gather);
  if (options_.plan.gradients == Placement::sharded) reduce_buffers_ = std::make_unique<BufferPool>(sums, sizes.reduce);
}

// All that collectives read and write beside passing values: buffers, and what groups keep at rest.
void Engine::reserve(const std::vector<GroupSpec>& specs, const std::vector<FlatLayout>& layouts,
                     const BufferSizes& buffers) {
  const std::int64_t weight = c10::elementSize(options_.precision.compute),
                     gradient = c10::elementSize(options_.precision.gradient);
  std::vector<std::int64_t> gathered = buffers.gather, summed = options_.plan.gradients == Placement::sharded
                                                                    ? buffers.reduce
                                                                    : std::vector<std::int64_t>();
  std::int64_t largest_sum = 0;
  for (std::size_t g = 0; g < specs.size(); ++g) {
    const RestNumel rest = rest_numel(specs[g], layouts[g], options_.plan, options_.keep_frozen);
    const bool sharded = shards_weights(specs[g], options_.plan, options_.keep_frozen),
               elsewhere = options_.offload.weights && sharded;
    if (!elsewhere)
      gathered.push_back(quantized(specs[g]) ? codec_of(layouts[g], sharded).shard_bytes() : rest.weights * weight);
    if (rest.gradient == 0) continue;
    summed.push_back(rest.gradient * gradient);
    const bool passes_buffer = options_.plan.gradients == Placement::sharded;
    largest_sum = std::max(largest_sum, layouts[g].numel() * (passes_buffer ? weight : gradient));
  }
  Communicator& gathers = shards_ ? *shards_ : communicator_;
  if (reductions_) {
    gathers.memory().reserve(gathered, 0);
    reductions_->memory().reserve(summed, largest_sum);
  } else {
    gathered.insert(gathered.end(), summed.begin(), summed.end());
    gathers.memory().reserve(gathered, largest_sum);
  }
}

void Engine::make_groups() {
  GroupContext context{options_.plan, options_.precision, options_.device};
  context.shards = shards_ ? shards_.get() : &communicator_;
  context.reductions = reductions_ ? reductions_.get() : context.shards;
  context.replicas = replicas_.get();
  context.gather_stream = &gather_stream_;
  context.reduce_stream = &reduce_stream_;
  const std::vector<GroupSpec> specs = plan_groups(chain_);
  std::vector<FlatLayout> layouts;
  for (const GroupSpec& spec : specs)
    layouts.emplace_back(specs_of(chain_, spec), context.shards->size(), alignment_of(spec));
  make_buffers(specs, layouts);
  context.gather_buffers = gather_buffers_.get();
  context.reduce_buffers = reduce_buffers_.get();
  context.keep_frozen = options_.keep_frozen;
  context.quantize_frozen = options_.quantize_frozen;
  context.quantize_scales = options_.quantize_scales;
  context.make_states = options_.offload.optimizer;
  context.optimizers = &optimizers_;
  context.optimizer_tensors = &optimizer_tensors_;
  context.through_host = on_device() || options_.offload.through_host;
  if (options_.offload.weights && options_.plan.parameters == Placement::sharded) {
    std::vector<std::int64_t> bytes;
    for (std::size_t g = 0; g < specs.size(); ++g) {
      const bool elsewhere = shards_weights(specs[g], options_.plan, options_.keep_frozen);
      const at::ScalarType type = options_.precision.compute;
      bytes.push_back(!elsewhere            ? 0
                      : quantized(specs[g]) ? codec_of(layouts[g], true).shard_bytes()
                                            : layouts[g].shard_numel() * std::int64_t(c10::elementSize(type)));
    }
    weight_store_ = options_.offload.weights(bytes);
    context.weight_store = weight_store_.get();
  }

  needed_by_.resize(chain_.size());
  for (std::size_t g = 0; g < specs.size(); ++g) {
    groups_.push_back(std::make_unique<ParameterGroup>(int(g), specs[g], chain_, layouts[g], context));
    (specs[g].spans_model() ? spanning_ : needed_by_[specs[g].unit]).push_back(groups_.back().get());
  }
  for (std::size_t u = 0; u < chain_.size(); ++u)
    for (const BorrowedParameter& borrowed : chain_[u]->borrowed())
      for (auto& group : groups_)
        if (!group->spec().spans_model() && group->owns({borrowed.owner_unit, borrowed.owner_parameter}))
          needed_by_[u].push_back(group.get());
}

std::int64_t Engine::alignment_of(const GroupSpec& spec) const {
  if (quantized(spec)) return nf4_block;
  return spec.trainable ? std::max<std::int64_t>(32, optimizers_.grain(options_.precision.master)) : 32;
}

std::int64_t Engine::peak_device_bytes() const {
  if (!on_device()) return 0;
  std::int64_t bytes =
      at::getDeviceAllocator(options_.device.type())->getDeviceStats(options_.device.index()).allocated_bytes[0].peak;
  for (Communicator* each : {&communicator_, shards_.get(), replicas_.get(), reductions_.get()})
    if (each) bytes += each->memory().own_device_bytes();
  return bytes;
}

void Engine::load(WeightSource& source, bool frozen_only) {
  for (auto& group : groups_)
    if (!frozen_only || !group->spec().trainable) group->load(source);
}

void Engine::open(int unit, Phase phase) {
  if (is_open_[unit]) return;
  for (ParameterGroup* group : needed_by_[unit]) group->unshard(phase);
  is_open_[unit] = true;
  if (weight_store_) fetch(phase == Phase::backward ? unit - 1 : unit + 1);
}

// Shards that live elsewhere are brought to this rank while the unit before them is at work.
void Engine::fetch(int unit) {
  if (unit < 0 || unit >= int(chain_.size())) return;
  for (ParameterGroup* group : needed_by_[unit]) group->fetch();
}

void Engine::prefetch(int unit, Phase phase) {
  if (!options_.overlap || unit < 0 || unit >= int(chain_.size()) || is_open_[unit]) return;
  if (phase == Phase::backward && !chain_[unit]->backward_reads_weights()) return;
  for (ParameterGroup* group : needed_by_[unit]) group->prefetch(phase);
}

void Engine::close(int unit) {
  if (!is_open_[unit]) return;
  for (ParameterGroup* group : needed_by_[unit]) group->reshard();
  is_open_[unit] = false;
}

void Engine::close_all() {
  for (int u = 0; u < int(chain_.size()); ++u) close(u);
  if (spanning_open_)
    for (ParameterGroup* group : spanning_) group->reshard();
  spanning_open_ = false;
  for (auto& group : groups_) group->cancel_prefetch();
}

bool Engine::recomputes(int unit) const {
  const bool block = unit > 0 && unit + 1 < int(chain_.size());
  return block && options_.recompute_every > 0 && (unit - 1) % options_.recompute_every == 0;
}

at::Tensor Engine::run_unit(int unit, const at::Tensor& x) {
  if (!recomputes(unit) || !at::GradMode::is_enabled()) return bodies_[unit](x);
  std::vector<at::Tensor> trainable;
  for (const Parameter& parameter : chain_[unit]->parameters())
    if (parameter.trainable) trainable.push_back(parameter.tensor);
  return recompute(bodies_[unit], x, trainable);
}

at::Tensor Engine::run_chain(const ForwardContext& context,
                             const std::function<at::Tensor(Unit&, const at::Tensor&)>* head) {
  CategoryScope scope(MemoryCategory::activations);
  close_all();                                           // a forward whose backward never came
  if (gather_buffers_) gather_stream_.follow_current();  // the optimizer's new weights
  held_context_ = context;
  held_context_.recompute_attention = options_.recompute_attention;
  context_ = &held_context_;
  for (ParameterGroup* group : spanning_) group->unshard(Phase::forward);
  spanning_open_ = true;
  at::Tensor x;
  const int last = int(chain_.size()) - 1;
  for (int u = 0; u <= last; ++u) {
    open(u, Phase::forward);
    prefetch(u + 1, Phase::forward);
    x = enter_unit(x, *this, u);
    x = u == last && head ? (*head)(*chain_[u], x) : run_unit(u, x);
    x = exit_unit(x, *this, u);
    if (u < last) close(u);  // backward needs the last one first
  }
  return x;
}

at::Tensor Engine::forward(const ForwardContext& context, MicroBatch micro) {
  micro_ = micro;
  std::fill(is_collected_.begin(), is_collected_.end(), false);
  return run_chain(context, nullptr);
}

at::Tensor Engine::evaluate(const ForwardContext& context) {
  at::NoGradGuard no_grad;
  at::Tensor loss = run_chain(context, nullptr);
  close_all();
  return loss;
}

at::Tensor Engine::evaluate(const ForwardContext& context,
                            const std::function<at::Tensor(Unit&, const at::Tensor&)>& head) {
  at::NoGradGuard no_grad;
  at::Tensor result = run_chain(context, &head);
  close_all();
  return result;
}

void Engine::before_backward(int unit) {
  if (chain_[unit]->backward_reads_weights()) open(unit, Phase::backward);
  prefetch(unit - 1, Phase::backward);
}

void Engine::after_backward(int unit) {
  if (is_collected_[unit]) return;
  is_collected_[unit] = true;
  at::NoGradGuard no_grad;
  for (ParameterGroup* group : spanning_)
    if (group->spec().trainable) group->collect_gradients(unit, micro_.first);
  for (ParameterGroup* group : needed_by_[unit]) {
    if (!group->spec().trainable || group->spec().unit != unit) continue;  // a borrowed group waits for its owner
    group->collect_gradients(unit, micro_.first);
    group->reduce_gradients(micro_.first, micro_.last);
  }
  close(unit);
}

void Engine::backward(const at::Tensor& loss, double scale) {
  CategoryScope scope(MemoryCategory::activations);
  loss.backward(at::full({}, scale, loss.options()));
  // Units whose input carries no gradient are not told by autograd that they are done.
  for (int u = int(chain_.size()) - 1; u >= 0; --u) after_backward(u);
  for (ParameterGroup* group : spanning_)
    if (group->spec().trainable) group->reduce_gradients(micro_.first, micro_.last);
  close_all();
  if (micro_.last) reduce_stream_.join();
}

void Engine::export_weights(const ParameterGroup::TensorSink& sink, bool trainable_only) {
  communicator_.failures().check();
  for (auto& group : groups_)
    if (group->spec().trainable || !trainable_only) group->export_weights(sink);
}

void Engine::export_gradients(const ParameterGroup::TensorSink& sink) {
  communicator_.failures().check();
  for (auto& group : groups_)
    if (group->spec().trainable) group->export_gradients(sink);
}

}  // namespace zero
