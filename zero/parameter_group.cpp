#include "zero/parameter_group.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "comm/error.h"
#include "comm/log.h"
#include "offload/ledger.h"

namespace zero {
namespace {

constexpr std::int64_t load_chunk = 4 << 20;  // elements: bounds what loading adds to the peak

// Leaves of the same memory under autograd: a view that knows nothing of its base.
at::Tensor make_leaf(const at::Tensor& flat, std::int64_t offset, const Parameter& parameter) {
  at::Tensor leaf = flat.narrow(0, offset, parameter.numel()).view(parameter.shape()).detach();
  return leaf.set_requires_grad(parameter.trainable);
}

}  // namespace

const char* name_of(GroupState state) {
  static const char* const names[] = {"sharded", "gathering", "full"};
  return names[int(state)];
}

ParameterGroup::ParameterGroup(int index, GroupSpec spec, const Chain& chain, FlatLayout layout, const GroupContext& context)
    : index_(index), spec_(std::move(spec)), layout_(std::move(layout)), context_(context) {
  const bool whole = context_.plan.optimizer == Placement::resident;
  own_begin_ = whole ? 0 : layout_.shard_begin(context_.shards->rank());
  own_numel_ = whole ? layout_.numel() : layout_.shard_numel();
  allocate_weights();
  point_leaves(chain);
  if (!spec_.trainable) return;
  allocate_states();
  plan_decay();
}

bool ParameterGroup::weights_sharded() const {
  return context_.plan.parameters == Placement::sharded && (spec_.trainable || !context_.keep_frozen);
}

at::Tensor ParameterGroup::shard_of(const at::Tensor& full) const {
  return full.narrow(0, layout_.shard_begin(context_.shards->rank()), layout_.shard_numel());
}

at::Tensor ParameterGroup::own_weights() const {
  return weights_sharded() ? weights_ : weights_.narrow(0, own_begin_, own_numel_);
}

at::Tensor ParameterGroup::own_gradient() const {
  return gradients_sharded() ? gradient_ : gradient_.narrow(0, own_begin_, own_numel_);
}

bool ParameterGroup::owns(ParameterRef parameter) const {
  return std::find(spec_.members.begin(), spec_.members.end(), parameter) != spec_.members.end();
}

// What collectives read and write lies where the backend is fastest on it.
at::Tensor ParameterGroup::zeros(std::int64_t numel, at::ScalarType type, Communicator& communicator) const {
  if (context_.device.is_cpu()) return at::zeros({numel}, type);
  return communicator.allocate(numel, type).zero_();
}

void ParameterGroup::allocate_weights() {
  MemoryScope scope(MemoryCategory::parameters);
  weights_ = zeros(weights_sharded() ? layout_.shard_numel() : layout_.numel(), context_.precision.compute, *context_.shards);
  if (weights_sharded()) full_ = FlatStorage(layout_.numel(), context_.precision.compute, weights_.device());
  state_ = weights_sharded() ? GroupState::sharded : GroupState::full;
}

void ParameterGroup::allocate_states() {
  {
    MemoryScope scope(MemoryCategory::gradients);
    gradient_ = zeros(gradients_sharded() ? layout_.shard_numel() : layout_.numel(), context_.precision.gradient, *context_.reductions);
  }
  MemoryScope scope(MemoryCategory::optimizer);
  const at::TensorOptions options = at::TensorOptions().dtype(context_.precision.master).device(context_.device);
  if (!context_.precision.weights_are_master()) master_ = at::zeros({own_numel_}, options);
  moment1_ = at::zeros({own_numel_}, options);
  moment2_ = at::zeros({own_numel_}, options);
}

void ParameterGroup::point_leaves(const Chain& chain) {
  // LibTorch checks the bounds of a view when it is made, so a sharded group needs its memory for a moment.
  if (weights_sharded()) full_.attach(context_.gather_slots->memory(gather_slot_ = context_.gather_slots->acquire(full_.bytes())));
  const at::Tensor& flat = weights_sharded() ? full_.tensor() : weights_;
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
  if (!weights_sharded()) return;
  full_.detach();
  context_.gather_slots->release(std::exchange(gather_slot_, -1));
}

void ParameterGroup::plan_decay() {
  // Decay is a matter of the original tensor's dimensions. Padding holds zeros, which stay zeros either way.
  for (const FlatPiece& piece : layout_.pieces(own_begin_, own_numel_)) {
    const bool decays = AdamW::decays(layout_.tensors()[piece.tensor].spec.shape);
    if (!decay_.empty()) decay_.back().end = piece.range_begin;
    if (decay_.empty() || decay_.back().decays != decays) decay_.push_back({decay_.empty() ? 0 : piece.range_begin, 0, decays});
  }
  if (decay_.empty()) decay_.push_back({0, 0, false});  // a shard of padding alone
  decay_.back().end = own_numel_;
}

void ParameterGroup::load(WeightSource& source) {
  for (const FlatPiece& piece : layout_.pieces(own_begin_, own_numel_)) {
    for (std::int64_t done = 0; done < piece.count; done += load_chunk) {
      const std::int64_t count = std::min(load_chunk, piece.count - done);
      const at::Tensor values = at::empty({count}, context_.precision.master);
      source.read(layout_.tensors()[piece.tensor].spec, piece.tensor_begin + done, count, values);
      own_weights().narrow(0, piece.range_begin + done, count).copy_(values);
      if (master_.defined()) master_.narrow(0, piece.range_begin + done, count).copy_(values);
    }
  }
  publish();
}

void ParameterGroup::move_to(GroupState next) {
  const bool legal = (state_ == GroupState::sharded && next == GroupState::gathering) ||
                     (state_ == GroupState::gathering && next == GroupState::full) ||
                     (state_ == GroupState::gathering && next == GroupState::sharded) ||
                     (state_ == GroupState::full && next == GroupState::sharded);
  ZERO_CHECK(legal, text("group ", index_, " of unit ", spec_.unit, " on rank ", context_.shards->rank(), " cannot go from ",
                         name_of(state_), " to ", name_of(next)));
  state_ = next;
}

void ParameterGroup::prefetch(Phase phase) {
  if (!weights_sharded() || state_ != GroupState::sharded) return;
  move_to(GroupState::gathering);
  const StreamLane::Guard lane = context_.gather_lane->enter();
  gather_slot_ = context_.gather_slots->acquire(full_.bytes());
  full_.attach(context_.gather_slots->memory(gather_slot_));
  context_.shards->all_gather_into(full_.tensor(), weights_, tag(phase));
  context_.gather_slots->mark_filled(gather_slot_);
}

void ParameterGroup::materialize(Phase phase) {
  if (!weights_sharded() || users_++ > 0) return;
  prefetch(phase);
  context_.gather_slots->await_filled(gather_slot_);
  move_to(GroupState::full);
}

void ParameterGroup::release() {
  if (!weights_sharded()) return;
  ZERO_CHECK(users_ > 0, text("group ", index_, " is released more often than materialized"));
  if (--users_ > 0) return;
  put_back();
}

void ParameterGroup::forget() {
  if (state_ != GroupState::gathering) return;
  context_.gather_slots->await_filled(gather_slot_);
  put_back();
}

void ParameterGroup::put_back() {
  move_to(GroupState::sharded);
  full_.detach();
  context_.gather_slots->release(std::exchange(gather_slot_, -1));
}

void ParameterGroup::collect_gradients(int unit, bool first) {
  ZERO_CHECK(spec_.trainable, "a frozen group has no gradients");
  if (gradients_sharded() && reduce_slot_ < 0) {
    reduce_slot_ = context_.reduce_slots->acquire(layout_.numel() * std::int64_t(c10::elementSize(context_.precision.compute)));
    packed_ = context_.reduce_slots->tensor(reduce_slot_, layout_.numel(), context_.precision.compute);
    // The slot held another group's gradients: what no leaf overwrites must not be summed.
    std::int64_t end = 0;
    for (const Leaf& leaf : leaves_) {
      packed_.narrow(0, end, leaf.offset - end).zero_();
      end = leaf.offset + leaf.numel;
    }
    packed_.narrow(0, end, layout_.numel() - end).zero_();
  }
  const at::Tensor& destination = gradients_sharded() ? packed_ : gradient_;
  for (Leaf& leaf : leaves_) {
    if (leaf.member.unit != unit) continue;
    const at::Tensor part = destination.narrow(0, leaf.offset, leaf.numel);
    bool add = !gradients_sharded() && !first;
    std::vector<at::Tensor> sources = leaf.borrowed;
    sources.insert(sources.begin(), leaf.tensor);
    for (at::Tensor& source : sources) {
      at::Tensor& gradient = source.mutable_grad();
      if (!gradient.defined()) continue;
      pack(part, gradient, add);
      gradient.reset();
      add = true;
    }
    if (!add) part.zero_();
  }
}

void ParameterGroup::reduce_gradients(bool first, bool last) {
  if (!gradients_sharded() && !last) return;
  context_.reduce_lane->follow_current();
  const StreamLane::Guard lane = context_.reduce_lane->enter();
  issue_reduction(first, last);
}

void ParameterGroup::issue_reduction(bool first, bool last) {
  const ReduceOptions sum{context_.precision.sum, false};
  if (gradients_sharded()) {
    context_.reductions->reduce_scatter(gradient_, packed_, {context_.precision.sum, !first}, tag(Phase::reduce));
    packed_.reset();
    context_.reduce_slots->release(std::exchange(reduce_slot_, -1));
  } else if (context_.plan.optimizer == Placement::resident) {
    context_.reductions->all_reduce(gradient_, sum, tag(Phase::reduce));
  } else {
    context_.reductions->reduce_scatter(own_gradient(), gradient_, sum, tag(Phase::reduce));
  }
  if (last && context_.replicas) context_.replicas->all_reduce(own_gradient(), sum, tag(Phase::reduce));
}

NormPart ParameterGroup::gradient_norm_part() const {
  return sum_of_squares(gradients_sharded() ? gradient_ : shard_of(gradient_));
}

void ParameterGroup::update(const AdamWFactors& factors) {
  const at::Tensor weights = own_weights(), gradient = own_gradient();
  for (const DecaySpan& range : decay_) {
    const auto from_begin = [&](const at::Tensor& tensor) {
      return static_cast<void*>(static_cast<char*>(tensor.data_ptr()) + range.begin * std::int64_t(tensor.element_size()));
    };
    AdamWSpan span;
    span.master = from_begin(master_.defined() ? master_ : weights);
    span.m = from_begin(moment1_);
    span.v = from_begin(moment2_);
    span.state_type = context_.precision.master;
    span.gradient = from_begin(gradient);
    span.gradient_type = context_.precision.gradient;
    span.weights = master_.defined() ? from_begin(weights) : nullptr;
    span.weight_type = context_.precision.compute;
    span.n = range.end - range.begin;
    AdamWFactors with_decay = factors;
    if (!range.decays) with_decay.weight_decay = 0;
    adamw_update(span, with_decay);
  }
}

void ParameterGroup::publish() {
  if (weights_sharded() || own_numel_ == layout_.numel()) return;
  context_.shards->all_gather_into(weights_, own_weights(), tag(Phase::publish));
}

void ParameterGroup::export_flat(const at::Tensor& own, const TensorSink& sink) {
  at::Tensor full = own;
  if (own.numel() != layout_.numel()) {
    full = at::empty({layout_.numel()}, own.options());
    context_.shards->all_gather_into(full, own, tag(Phase::save));
  }
  for (const FlatTensor& tensor : layout_.tensors())
    sink(tensor.spec, full.narrow(0, tensor.offset, tensor.spec.numel()).view(tensor.spec.shape));
}

void ParameterGroup::export_weights(const TensorSink& sink) { export_flat(master_.defined() ? master_ : own_weights(), sink); }

void ParameterGroup::export_gradients(const TensorSink& sink) { export_flat(own_gradient(), sink); }

}  // namespace zero
