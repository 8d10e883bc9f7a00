#include "zero/core/parameter_group.h"

#include <ATen/ATen.h>
#include <ATen/OpMathType.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "base/memory_tracker.h"
#include "zero/core/kernels/reduce_kernels.h"

namespace zero {
namespace {

// Makes an autograd leaf over the same memory: a view that autograd does not connect to its base.
at::Tensor make_leaf(const at::Tensor& flat, std::int64_t offset, const Parameter& parameter) {
  at::Tensor leaf = flat.narrow(0, offset, parameter.numel()).view(parameter.shape()).detach();
  return leaf.set_requires_grad(parameter.trainable);
}

// Moves the gradient out of the leaf; undefined if it has none.
at::Tensor take_gradient(at::Tensor& leaf) { return std::exchange(leaf.mutable_grad(), at::Tensor()); }

bool fuses_accumulation(const StatesOptions& options) { return options.fuse_accumulation && !options.sums_in_order; }

// Memory for collectives is allocated where the backend is fastest.
std::unique_ptr<ShardHome> zeros(std::int64_t numel, at::ScalarType type, Communicator& ranks) {
  return std::make_unique<TensorHome>(ranks.memory().allocate(numel, type).zero_());
}

}  // namespace

ParameterGroup::ParameterGroup(int index, const GroupLayout& layout, const Units& units, const GroupContext& context)
    : index_(index),
      layout_(layout),
      context_(context),
      own_(is_here() ? layout.own(ranks().rank()) : FlatRange()),
      weights_(make_weights()) {
  if (is_here()) weights_.make_views([&](const at::Tensor& flat) { point_leaves(units, flat); });
  if (!spec().trainable) return;
  gradient_.emplace(make_gradient());
  CategoryScope scope(MemoryCategory::optimizer);
  for (StateLayout& states : state_layouts(units)) states_.push_back(make_states(std::move(states)));
  const bool travels = is_here() && options().offload.optimizer && options().passes_host();
  host_update_.emplace(travels ? host_update_shape() : HostUpdate::Shape(), options().device);
}

CallTag ParameterGroup::tag(Phase phase) const {
  return {phase, spec().spans_model() ? -1 : options().first_unit + spec().unit, index_};
}

bool ParameterGroup::owns(ParameterRef parameter) const {
  return std::find(spec().members.begin(), spec().members.end(), parameter) != spec().members.end();
}

std::unique_ptr<ShardHome> ParameterGroup::home_of_weights() const {
  CategoryScope scope(MemoryCategory::parameters);
  const WireFormat& format = *layout_.format;
  if (!stores_weights()) return zeros(is_here() ? format.rest_numel() : 0, format.type(), ranks());
  return std::make_unique<StoredShard>(*context_.weight_store, index_, format.type(), options().passes_host());
}

WeightBuffer ParameterGroup::make_weights() const {
  ShardedBuffer rest(layout_.weights, own_, layout().numel(), ranks(), home_of_weights());
  return WeightBuffer(
      std::move(rest),
      {layout().numel(), precision().compute, options().device, layout_.format, tag(Phase::other), options().watched},
      context_.weights);
}

GradientBuffer ParameterGroup::make_gradient() const {
  CategoryScope scope(MemoryCategory::gradients);
  Communicator& sums = *context_.sums;
  ShardedBuffer rest(layout_.gradient, own_, layout().numel(), sums,
                     zeros(is_here() ? layout_.gradient_numel() : 0, precision().gradient, sums));
  std::vector<at::Tensor> rungs;
  for (int i = 0; i < layout_.rungs; ++i)
    rungs.push_back(sums.memory().allocate(layout().shard_numel(), precision().gradient));
  return GradientBuffer(std::move(rest), {layout().numel(), precision().compute, precision().sum, tag(Phase::other)},
                        context_.gradients, *context_.replicas, std::move(rungs));
}

std::unique_ptr<StateShard> ParameterGroup::make_states(StateLayout layout) const {
  const Optimizer& optimizer = (*context_.optimizers)[layout.optimizer()];
  std::vector<StateSpec> specs = stored_states(optimizer, precision().master, options().storage);
  if (options().storage.split_master)
    specs.insert(specs.begin(), {"remainder", at::kShort});
  else if (!precision().weights_are_master())
    specs.insert(specs.begin(), {"master", precision().master});
  const std::string name = text("group", index_, states_.empty() ? "" : "-" + optimizer.name());
  const StateStoreFactory& elsewhere = options().offload.optimizer;  // a store on the host
  const at::Device device = elsewhere ? at::Device(at::kCPU) : options().device;
  const auto make_store = [&](std::int64_t elements) -> std::unique_ptr<StateStore> {
    if (elsewhere && is_here()) return elsewhere(name, elements, specs);
    return std::make_unique<ResidentStateStore>(elements, specs, device);
  };
  return std::make_unique<StateShard>(optimizer, std::move(layout), own_, specs, make_store, device,
                                      options().storage.seed);
}

// The full tensors, not slices, determine which optimizer updates a tensor, and how.
std::vector<StateLayout> ParameterGroup::state_layouts(const Units& units) {
  std::map<int, std::vector<StateTensor>> by_optimizer;
  for (int t = 0; t < int(layout().tensors().size()); ++t) {
    const FlatTensor& tensor = layout().tensors()[std::size_t(t)];
    const ParameterRef member = spec().members[std::size_t(tensor.parameter)];
    TensorRule rule = context_.optimizers->rule_of(
        tensor.spec.name,
        {tensor.spec.full().shape, member.unit > 0 && member.unit + 1 < int(units.size()), tensor.offset});
    rule.lr_scale *= units[member.unit]->parameters()[member.parameter].lr_scale;
    context_.optimizer_tensors->resize(std::size_t(context_.optimizers->size()));
    auto& known = (*context_.optimizer_tensors)[std::size_t(rule.optimizer)];
    by_optimizer[rule.optimizer].push_back({t, 0, rule, int(known.size())});
    known.push_back(tensor.spec.full());
  }
  std::vector<StateLayout> layouts;
  for (auto& [optimizer, tensors] : by_optimizer)
    layouts.emplace_back(layout(), std::move(tensors),
                         largest_grain((*context_.optimizers)[optimizer].states(precision().master)));
  return layouts;
}

HostUpdate::Shape ParameterGroup::host_update_shape() const {
  HostUpdate::Shape shape{own_.numel, precision().gradient};
  if (!stores_weights()) shape.weights = precision().compute;
  return shape;
}

// With overlap, products write to no passing buffer: the unit's backward would have to wait for an earlier sum that
// still reads it.
std::optional<at::ScalarType> ParameterGroup::written_gradient() const {
  const at::ScalarType compute = precision().compute, gradient = precision().gradient;
  if (!spec().trainable) return std::nullopt;
  if (!holds_full_gradient())
    return options().write_gradients && !options().overlap ? std::optional(compute) : std::nullopt;
  const bool fuses = fuses_accumulation(options()),
             one_micro_batch = options().sums_in_order || options().micro_batches == 1;
  if (gradient == compute && (fuses || (options().write_gradients && one_micro_batch))) return gradient;
  return fuses && gradient == at::toOpMathType(compute) ? std::optional(gradient) : std::nullopt;
}

void ParameterGroup::point_leaves(const Units& units, const at::Tensor& flat) {
  for (int i = 0; i < int(spec().members.size()); ++i) {
    const ParameterRef member = spec().members[i];
    Parameter& parameter = units[member.unit]->parameters()[member.parameter];
    const std::int64_t offset = layout().parameter_offset(i);
    const at::Tensor leaf_of_group = make_leaf(flat, offset, parameter);
    if (parameter.given)
      point_at(parameter.tensor, leaf_of_group);
    else
      parameter.tensor = leaf_of_group;
    Leaf leaf{member, parameter.tensor, {}, {}, {offset, parameter.numel()}, {}};
    // A user's module waits for the leaf's own gradient.
    if (written_gradient() && !parameter.given) leaf.place = GradientPlace::put_on(leaf.tensor);
    for (ParameterUnit* unit : units)
      for (BorrowedParameter& borrowed : unit->borrowed())
        if (borrowed.owner_unit == member.unit && borrowed.owner_parameter == member.parameter)
          leaf.borrowed.push_back(borrowed.tensor = make_leaf(flat, offset, parameter));
    used_.push_back(leaf.range);
    leaves_.push_back(std::move(leaf));
  }
}

void ParameterGroup::expect_gradients(MicroBatch micro) {
  if (!written_gradient() || !gradient_->has_room()) return;
  if (gradient_->adds(micro) && !fuses_accumulation(options())) return;
  const at::Tensor whole = gradient_->destination(used_);
  for (Leaf& leaf : leaves_)
    if (leaf.place)
      leaf.place->open(whole.narrow(0, leaf.range.begin, leaf.range.numel).view(leaf.tensor.sizes()),
                       gradient_->adds(micro));
}

void ParameterGroup::add_borrowed(Leaf& leaf, at::Tensor& sum) {
  for (at::Tensor& borrowed : leaf.borrowed) {
    const at::Tensor more = take_gradient(borrowed);
    if (more.defined()) sum = sum.defined() ? sum.add_(more) : more;
  }
}

void ParameterGroup::set_aside_borrowed() {
  const at::NoGradGuard no_grad;
  for (Leaf& leaf : leaves_)
    if (!leaf.borrowed.empty()) add_borrowed(leaf, leaf.set_aside.emplace_back());
}

void ParameterGroup::collect_gradients(int unit, MicroBatch micro) {
  ZERO_CHECK(spec().trainable, "a frozen group has no gradients");
  const at::NoGradGuard no_grad;
  const at::Tensor destination = gradient_->destination(used_);
  for (Leaf& leaf : leaves_) {
    if (leaf.member.unit != unit) continue;
    const bool written = leaf.place && leaf.place->close(), add = written || gradient_->adds(micro);
    const at::Tensor part = destination.narrow(0, leaf.range.begin, leaf.range.numel);
    // Gradients of several leaves of one weight are summed in their type before they are added to other micro-batches.
    // A packed buffer of that type does the same, so bits agree at every stage.
    at::Tensor sum = take_gradient(leaf.tensor);
    add_borrowed(leaf, sum);
    if (!leaf.set_aside.empty()) {
      const at::Tensor more = std::exchange(leaf.set_aside.front(), {});
      leaf.set_aside.pop_front();
      if (more.defined()) sum = sum.defined() ? sum.add_(more) : more;
    }
    if (sum.defined()) sum = sum.contiguous();
    if (!sum.defined()) {
      if (!add) part.zero_();
    } else if (options().device.is_cpu()) {
      pack(part, sum, add);
    } else {
      add ? part.add_(sum.reshape({-1})) : part.copy_(sum.reshape({-1}));
    }
  }
}

void ParameterGroup::reduce_gradients(MicroBatch micro) {
  gradient_->reduce(micro, [this](const at::Tensor& own) { host_update_->send(own); });
}

void ParameterGroup::conclude_gradients() {
  gradient_->conclude([this](const at::Tensor& own) { host_update_->send(own); });
}

void ParameterGroup::drop_gradients() {
  gradient_->drop();
  for (Leaf& leaf : leaves_) {
    if (leaf.place) leaf.place->close();
    take_gradient(leaf.tensor);
    for (at::Tensor& borrowed : leaf.borrowed) take_gradient(borrowed);
    leaf.set_aside.clear();
  }
}

void ParameterGroup::prefetch_update(int pass) {
  for (const auto& shard : states_)
    if (pass < shard->optimizer().passes()) {
      shard->store().prefetch();
      break;
    }
  weights_.fetch();
}

int ParameterGroup::passes() const {
  int most = 0;
  for (const auto& shard : states_) most = std::max(most, shard->optimizer().passes());
  return most;
}

void ParameterGroup::update(const std::vector<UpdateContext>& contexts) {
  const at::NoGradGuard no_grad;
  bool writes = false;  // true if weights are written, as in an optimizer's last pass
  for (const auto& shard : states_) writes |= contexts.front().pass + 1 == shard->optimizer().passes();
  const ShardLease rest = weights_.at_rest(writes);
  const at::Tensor own = weights_.own_of(rest.tensor()), weights = host_update_->begin(own);
  for (const auto& shard : states_)
    shard->update(contexts[std::size_t(shard->layout().optimizer())], weights, update_gradient());
  if (writes) host_update_->finish(own);
}

}  // namespace zero
