#include "zero/core/parameter_group.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "base/memory_tracker.h"

namespace zero {
namespace {

// Leaves of the same memory under autograd: a view that knows nothing of its base.
at::Tensor make_leaf(const at::Tensor& flat, std::int64_t offset, const Parameter& parameter) {
  at::Tensor leaf = flat.narrow(0, offset, parameter.numel()).view(parameter.shape()).detach();
  return leaf.set_requires_grad(parameter.trainable);
}

// The leaf's gradient, which it holds no more; undefined where it has none.
at::Tensor take_gradient(at::Tensor& leaf) { return std::exchange(leaf.mutable_grad(), at::Tensor()); }

}  // namespace

bool shards_weights(const GroupSpec& spec, const ShardPlan& plan, bool keep_frozen) {
  return plan.parameters == Placement::sharded && (spec.trainable || !keep_frozen);
}

RestNumel rest_numel(const GroupSpec& spec, const FlatLayout& layout, const ShardPlan& plan, bool keep_frozen) {
  RestNumel numel;
  numel.weights = shards_weights(spec, plan, keep_frozen) ? layout.shard_numel() : layout.numel();
  if (spec.trainable) numel.gradient = plan.gradients == Placement::sharded ? layout.shard_numel() : layout.numel();
  return numel;
}

const char* name_of(ShardedState state) {
  static const char* const names[] = {"sharded", "gathering", "unsharded"};
  return names[int(state)];
}

ParameterGroup::ParameterGroup(int index, GroupSpec spec, const Chain& chain, FlatLayout layout,
                               const GroupContext& context)
    : index_(index), spec_(std::move(spec)), layout_(std::move(layout)), context_(context), updated_(context.device) {
  if (context_.quantize_frozen && quantizes(spec_, int(chain.size())))
    codec_ = std::make_unique<Nf4Codec>(
        layout_, weights_sharded() ? layout_.shards() : 1,
        Nf4CodecOptions{context_.precision.compute, context_.quantize_scales, context_.device});
  const bool whole = context_.plan.optimizer == Placement::resident || (codec_ && !weights_sharded());
  own_begin_ = whole ? 0 : layout_.shard_begin(context_.shards->rank());
  own_numel_ = whole ? layout_.numel() : layout_.shard_numel();
  allocate_weights();
  point_leaves(chain);
  if (!spec_.trainable) return;
  allocate_states(chain);
}

bool ParameterGroup::weights_sharded() const { return shards_weights(spec_, context_.plan, context_.keep_frozen); }

at::Tensor ParameterGroup::shard_of(const at::Tensor& full) const {
  return full.narrow(0, layout_.shard_begin(context_.shards->rank()), layout_.shard_numel());
}

ShardLease ParameterGroup::own_weights(bool changes) const {
  if (changes) await_updated();
  if (!weights_sharded()) return ShardLease(codec_ ? weights_ : weights_.narrow(0, own_begin_, own_numel_));
  if (context_.weight_store) return ShardLease(*context_.weight_store, index_, rest_type(), changes);
  return ShardLease(weights_);
}

at::Tensor ParameterGroup::own_gradient() const {
  return gradients_sharded() ? gradient_ : gradient_.narrow(0, own_begin_, own_numel_);
}

bool ParameterGroup::owns(ParameterRef parameter) const {
  return std::find(spec_.members.begin(), spec_.members.end(), parameter) != spec_.members.end();
}

// What collectives read and write lies where the backend is fastest on it.
at::Tensor ParameterGroup::zeros(std::int64_t numel, at::ScalarType type, Communicator& communicator) const {
  return communicator.memory().allocate(numel, type).zero_();
}

void ParameterGroup::allocate_weights() {
  CategoryScope scope(MemoryCategory::parameters);
  const bool elsewhere = weights_sharded() && context_.weight_store;
  const std::int64_t count =
      codec_ ? codec_->shard_bytes() : rest_numel(spec_, layout_, context_.plan, context_.keep_frozen).weights;
  if (!elsewhere) weights_ = zeros(count, rest_type(), *context_.shards);
  if (comes_and_goes()) full_ = FlatStorage(layout_.numel(), context_.precision.compute, context_.device);
  state_ = comes_and_goes() ? ShardedState::sharded : ShardedState::unsharded;
}

void ParameterGroup::allocate_states(const Chain& chain) {
  {
    CategoryScope scope(MemoryCategory::gradients);
    gradient_ = zeros(rest_numel(spec_, layout_, context_.plan, context_.keep_frozen).gradient,
                      context_.precision.gradient, *context_.reductions);
  }
  CategoryScope scope(MemoryCategory::optimizer);
  const at::Device device = context_.make_states ? at::Device(at::kCPU) : context_.device;
  for (StateLayout& layout : state_layouts(chain)) {
    const Optimizer& optimizer = (*context_.optimizers)[layout.optimizer()];
    std::vector<StateSpec> specs = optimizer.states(context_.precision.master);
    if (!context_.precision.weights_are_master()) specs.insert(specs.begin(), {"master", context_.precision.master});
    const std::string name = text("group", index_, states_.empty() ? "" : "-" + optimizer.name());
    const auto make_store = [&](std::int64_t elements) -> std::unique_ptr<StateStore> {
      if (context_.make_states) return context_.make_states(name, elements, specs);
      return std::make_unique<ResidentStateStore>(elements, specs, device);
    };
    states_.push_back(std::make_unique<StateShard>(
        optimizer, std::move(layout), StateShard::OwnRange{own_begin_, own_numel_}, specs, make_store, device));
  }
  if (context_.make_states && context_.through_host)
    host_update_ = std::make_unique<HostUpdate>(host_update_shape(), context_.device);
}

// What is treated how is a matter of the original tensors.
std::vector<StateLayout> ParameterGroup::state_layouts(const Chain& chain) {
  std::map<int, std::vector<StateTensor>> by_optimizer;
  for (int t = 0; t < int(layout_.tensors().size()); ++t) {
    const FlatTensor& tensor = layout_.tensors()[std::size_t(t)];
    const ParameterRef member = spec_.members[std::size_t(tensor.parameter)];
    TensorRule rule = context_.optimizers->rule_of(
        tensor.spec.name, {tensor.spec.shape, member.unit > 0 && member.unit + 1 < int(chain.size()), tensor.offset});
    rule.lr_scale *= chain[member.unit]->parameters()[member.parameter].lr_scale;
    context_.optimizer_tensors->resize(std::size_t(context_.optimizers->size()));
    auto& known = (*context_.optimizer_tensors)[std::size_t(rule.optimizer)];
    by_optimizer[rule.optimizer].push_back({t, 0, rule, int(known.size())});
    known.push_back(tensor.spec);
  }
  std::vector<StateLayout> layouts;
  for (auto& [optimizer, tensors] : by_optimizer)
    layouts.emplace_back(layout_, std::move(tensors),
                         largest_grain((*context_.optimizers)[optimizer].states(context_.precision.master)));
  return layouts;
}

HostUpdate::Shape ParameterGroup::host_update_shape() const {
  HostUpdate::Shape shape{own_numel_, context_.precision.gradient, {}};
  if (!weights_sharded() || !context_.weight_store) shape.weights = context_.precision.compute;
  return shape;
}

void ParameterGroup::point_leaves(const Chain& chain) {
  // LibTorch checks the bounds of a view when it is made, so a sharded group needs its memory for a moment.
  if (comes_and_goes())
    full_.attach(context_.gather_buffers->memory(gather_buffer_ = context_.gather_buffers->acquire(full_.bytes())));
  const at::Tensor& flat = comes_and_goes() ? full_.tensor() : weights_;
  for (int i = 0; i < int(spec_.members.size()); ++i) {
    const ParameterRef member = spec_.members[i];
    Parameter& parameter = chain[member.unit]->parameters()[member.parameter];
    const std::int64_t offset = layout_.parameter_offset(i);
    parameter.tensor = make_leaf(flat, offset, parameter);
    Leaf leaf{member, parameter.tensor, {}, offset, parameter.numel()};
    for (Unit* unit : chain)
      for (BorrowedParameter& borrowed : unit->borrowed())
        if (borrowed.owner_unit == member.unit && borrowed.owner_parameter == member.parameter)
          leaf.borrowed.push_back(borrowed.tensor = make_leaf(flat, offset, parameter));
    leaves_.push_back(std::move(leaf));
  }
  if (!comes_and_goes()) return;
  full_.detach();
  context_.gather_buffers->release(std::exchange(gather_buffer_, -1));
}

void ParameterGroup::move_to(ShardedState next) {
  const bool legal = (state_ == ShardedState::sharded && next == ShardedState::gathering) ||
                     (state_ == ShardedState::gathering && next == ShardedState::unsharded) ||
                     (state_ == ShardedState::gathering && next == ShardedState::sharded) ||
                     (state_ == ShardedState::unsharded && next == ShardedState::sharded);
  ZERO_CHECK(legal, text("group ", index_, " of unit ", spec_.unit, " on rank ", context_.shards->rank(),
                         " cannot go from ", name_of(state_), " to ", name_of(next)));
  state_ = next;
}

void ParameterGroup::prefetch(Phase phase) {
  if (!comes_and_goes() || state_ != ShardedState::sharded) return;
  move_to(ShardedState::gathering);
  const SideStream::Guard on_stream = context_.gather_stream->enter();
  gather_buffer_ = context_.gather_buffers->acquire(full_.bytes());
  full_.attach(context_.gather_buffers->memory(gather_buffer_));
  if (codec_ && weights_sharded()) {
    code_buffer_ = context_.gather_buffers->acquire(codec_->all_bytes());
    const at::Tensor codes = context_.gather_buffers->tensor(code_buffer_, codec_->all_bytes(), at::kByte);
    gather_weights(codes, codes, phase);
  } else if (!codec_) {
    gather_weights(full_.tensor(),
                   context_.gather_buffers->tensor(gather_buffer_, layout_.numel(), context_.precision.compute), phase);
  }
  context_.gather_buffers->mark_filled(gather_buffer_);
}

// The buffer is the memory of `full`. What comes from the host is written there: autograd counts what is written to a
// variable.
void ParameterGroup::gather_weights(const at::Tensor& full, const at::Tensor& buffer, Phase phase) {
  const ShardLease own = own_weights(false);
  if (!context_.weight_store || !context_.through_host)
    return context_.shards->all_gather_into(full, own.tensor(), tag(phase));
  const std::int64_t numel = own.tensor().numel();
  const at::Tensor place = buffer.narrow(0, context_.shards->rank() * numel, numel);
  place.copy_(own.tensor(), /*non_blocking=*/context_.weight_store->keeps_addresses());
  context_.shards->all_gather_into(full, place, tag(phase));
}

void ParameterGroup::decode_into_full() {
  codec_->decode(
      code_buffer_ < 0 ? weights_ : context_.gather_buffers->tensor(code_buffer_, codec_->all_bytes(), at::kByte),
      full_.tensor());
  if (code_buffer_ >= 0) context_.gather_buffers->release(std::exchange(code_buffer_, -1));
}

void ParameterGroup::unshard(Phase phase) {
  await_updated();
  if (!comes_and_goes() || users_++ > 0) return;
  prefetch(phase);
  context_.gather_buffers->await_filled(gather_buffer_);
  if (codec_) decode_into_full();
  move_to(ShardedState::unsharded);
}

void ParameterGroup::reshard() {
  if (!comes_and_goes()) return;
  ZERO_CHECK(users_ > 0, text("group ", index_, " is resharded more often than unsharded"));
  if (--users_ > 0) return;
  put_back();
}

void ParameterGroup::cancel_prefetch() {
  if (state_ != ShardedState::gathering) return;
  context_.gather_buffers->await_filled(gather_buffer_);
  put_back();
}

void ParameterGroup::put_back() {
  move_to(ShardedState::sharded);
  full_.detach();
  context_.gather_buffers->release(std::exchange(gather_buffer_, -1));
  if (code_buffer_ >= 0) context_.gather_buffers->release(std::exchange(code_buffer_, -1));
}

void ParameterGroup::collect_gradients(int unit, bool first) {
  ZERO_CHECK(spec_.trainable, "a frozen group has no gradients");
  if (gradients_sharded() && reduce_buffer_ < 0) {
    reduce_buffer_ =
        context_.reduce_buffers->acquire(layout_.numel() * std::int64_t(c10::elementSize(context_.precision.compute)));
    packed_ = context_.reduce_buffers->tensor(reduce_buffer_, layout_.numel(), context_.precision.compute);
    // The buffer held another group's gradients: what no leaf overwrites must not be summed.
    std::int64_t end = 0;
    for (const Leaf& leaf : leaves_) {
      packed_.narrow(0, end, leaf.offset - end).zero_();
      end = leaf.offset + leaf.numel;
    }
    packed_.narrow(0, end, layout_.numel() - end).zero_();
  }
  const at::NoGradGuard no_grad;
  const at::Tensor& destination = gradients_sharded() ? packed_ : gradient_;
  for (Leaf& leaf : leaves_) {
    if (leaf.member.unit != unit) continue;
    const at::Tensor part = destination.narrow(0, leaf.offset, leaf.numel);
    const bool add = !gradients_sharded() && !first;
    // What a weight gets from several leaves is summed in their type before it meets other micro-batches, as it must be
    // where a packed buffer of that type comes between: the bits are then those of every stage.
    at::Tensor sum = take_gradient(leaf.tensor);
    for (at::Tensor& borrowed : leaf.borrowed) {
      const at::Tensor more = take_gradient(borrowed);
      if (more.defined()) sum = sum.defined() ? sum.add_(more) : more;
    }
    if (!sum.defined()) {
      if (!add) part.zero_();
    } else if (context_.device.is_cpu()) {
      pack(part, sum, add);
    } else {
      add ? part.add_(sum.reshape({-1})) : part.copy_(sum.reshape({-1}));
    }
  }
}

void ParameterGroup::reduce_gradients(bool first, bool last) {
  if (!gradients_sharded() && !last) return;
  context_.reduce_stream->follow_current();
  const SideStream::Guard on_stream = context_.reduce_stream->enter();
  issue_reduction(first, last);
}

void ParameterGroup::issue_reduction(bool first, bool last) {
  const ReduceOptions sum{context_.precision.sum, false};
  if (gradients_sharded()) {
    context_.reductions->reduce_scatter(gradient_, packed_, {context_.precision.sum, !first}, tag(Phase::reduce));
    packed_.reset();
    context_.reduce_buffers->release(std::exchange(reduce_buffer_, -1));
  } else if (context_.plan.optimizer == Placement::resident) {
    context_.reductions->all_reduce(gradient_, sum, tag(Phase::reduce));
  } else {
    context_.reductions->reduce_scatter(own_gradient(), gradient_, sum, tag(Phase::reduce));
  }
  if (last && context_.replicas) context_.replicas->all_reduce(own_gradient(), sum, tag(Phase::reduce));
  if (last && host_update_) host_update_->send(own_gradient());
}

NormPart ParameterGroup::gradient_norm_part() const { return sum_of_squares(gradient_part()); }

at::Tensor ParameterGroup::gradient_part() const { return gradients_sharded() ? gradient_ : shard_of(gradient_); }

void ParameterGroup::fetch() {
  if (weights_sharded() && context_.weight_store) context_.weight_store->fetch(index_);
}

void ParameterGroup::prefetch_update(int pass) {
  for (const auto& shard : states_)
    if (pass < shard->optimizer().passes()) {
      shard->store().prefetch();
      break;
    }
  fetch();
}

int ParameterGroup::passes() const {
  int most = 0;
  for (const auto& shard : states_) most = std::max(most, shard->optimizer().passes());
  return most;
}

at::Tensor ParameterGroup::update_gradient() const { return host_update_ ? host_update_->gradient() : own_gradient(); }

void ParameterGroup::update(const std::vector<UpdatePass>& passes) {
  const at::NoGradGuard no_grad;
  bool writes = false;  // weights, which an optimizer's last pass does
  for (const auto& shard : states_)
    writes |= passes[std::size_t(shard->layout().optimizer())].pass + 1 == shard->optimizer().passes();
  const ShardLease weights = own_weights(writes);
  const auto run = [&](const at::Tensor& own) {
    for (const auto& shard : states_)
      shard->update(passes[std::size_t(shard->layout().optimizer())], own, update_gradient());
  };
  host_update_ ? host_update_->update(weights.tensor(), writes, run) : run(weights.tensor());
}

void ParameterGroup::gather_updated() {
  if (weights_sharded() || own_numel_ == layout_.numel()) return;
  context_.gather_stream->follow_current();
  const SideStream::Guard on_stream = context_.gather_stream->enter();
  context_.shards->all_gather_into(weights_, own_weights(false).tensor(), tag(Phase::gather_updated));
  updated_.set();
  gathers_updated_ = true;
}

void ParameterGroup::await_updated() const {
  if (std::exchange(gathers_updated_, false)) updated_.wait();
}

}  // namespace zero
