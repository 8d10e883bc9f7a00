#include "zero/modules/gradient_collector.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "zero/modules/gradient_stand_in.h"

namespace zero {
namespace {

class ArrivalHook final : public torch::autograd::PostAccumulateGradHook {
 public:
  ArrivalHook(GradientCollector& collector, int group, int leaf, std::string name)
      : collector_(collector), group_(group), leaf_(leaf), name_(std::move(name)) {}
  void operator()(const torch::autograd::Variable& leaf) override {
    if (leaf.grad().layout() != at::kStrided)
      throw InputError("parameter " + name_ +
                       " got a sparse gradient: sharded parameters have dense ones; make the embedding with "
                       "sparse(false)");
    collector_.arrived(group_, leaf_);
  }

 private:
  GradientCollector& collector_;
  int group_, leaf_;
  std::string name_;
};

}  // namespace

GradientCollector::GradientCollector(UnitGroups& groups, Communicator& ranks) : groups_(groups), ranks_(ranks) {
  for (ParameterGroup* group : groups.trained()) {
    trained_.push_back({group});
    set_hooks(int(trained_.size()) - 1);
  }
  // Backward mostly runs in reverse registration order.
  for (int g = int(trained_.size()); g-- > 0;) order_.push_back(g);
}

void GradientCollector::set_hooks(int index) {
  Group& group = trained_[std::size_t(index)];
  for (const ParameterRef& member : group.group->spec().members) {
    const Parameter& parameter = groups_.units[std::size_t(member.unit)]->parameters()[std::size_t(member.parameter)];
    torch::autograd::impl::set_post_acc_grad_hooks(
        parameter.tensor,
        std::make_unique<ArrivalHook>(*this, index, int(group.leaves.size()), parameter.parts.front().name));
    group.leaves.push_back({parameter.parts.front().name, parameter.tensor, gradient_stand_in(parameter.tensor)});
  }
}

GradientCollector::~GradientCollector() {
  for (Group& group : trained_)
    for (Leaf& leaf : group.leaves) {
      torch::autograd::impl::set_post_acc_grad_hooks(leaf.parameter, nullptr);
      leaf.parameter.mutable_grad().reset();
    }
}

void GradientCollector::begin(MicroBatch micro, double weight) {
  micro_ = micro;
  weight_ = weight;
  next_ = 0;
  arrivals_ = 0;
  completed_.clear();
  for (Group& group : trained_) {
    group.group->drop_gradients();
    group.missing = int(group.leaves.size());
    for (Leaf& leaf : group.leaves) leaf.arrived = false;
  }
  in_backward_ = true;
}

void GradientCollector::arrived(int index, int leaf_index) {
  Group& group = trained_[std::size_t(index)];
  Leaf& leaf = group.leaves[std::size_t(leaf_index)];
  if (!in_backward_)
    throw InputError("parameter " + leaf.name +
                     " got a gradient outside the sharded model's backward: call model.backward(loss), not "
                     "loss.backward(); where it is another model's loss, freeze this one meanwhile "
                     "(set_requires_grad(false)), or shard both as one module");
  if (std::exchange(leaf.arrived, true))
    throw InputError("parameter " + leaf.name +
                     " got two gradients in one backward, from a backward inside another: recompute with "
                     "zero::recompute(), which gives one");
  ++arrivals_;
  if (--group.missing > 0) return;
  completed_.push_back(index);
  reduce_in_order();
}

void GradientCollector::reduce_in_order() {
  const at::NoGradGuard no_grad;
  for (; next_ < order_.size(); ++next_) {
    Group& group = trained_[std::size_t(order_[next_])];
    if (group.missing > 0) return;
    reduce(group);
  }
}

// Multiplies in the leaves' type, so that bits agree at every stage. Writes to a new tensor, since autograd may share
// the gradient's memory with another leaf or with a gradient that is still in flight.
void GradientCollector::weigh(Group& group) const {
  if (weight_ == 1) return;
  for (Leaf& leaf : group.leaves) {
    at::Tensor& gradient = leaf.parameter.mutable_grad();
    if (!gradient.defined()) continue;
    if (weight_ == 0)
      gradient.reset();
    else
      gradient = gradient * weight_;
  }
}

void GradientCollector::reduce(Group& group) {
  weigh(group);
  group.group->collect_gradients(group.group->spec().unit, micro_);
  group.group->add_gradients(micro_.first);
}

void GradientCollector::finish() {
  if (arrivals_ == 0)
    throw InputError(
        "backward: the loss depends on no trained parameter of this model: give it the loss of its own outputs");
  const at::NoGradGuard no_grad;
  for (; next_ < order_.size(); ++next_) reduce(trained_[std::size_t(order_[next_])]);
  if (!order_is_known_) agree_on_order();
  if (micro_.last) {
    for (const int g : order_) trained_[std::size_t(g)].group->conclude_gradients();
    groups_.reduce_stream.join();
  }
  in_backward_ = false;
  for (Group& group : trained_)
    for (Leaf& leaf : group.leaves) leaf.parameter.mutable_grad() = leaf.stand_in;
}

// Uses the order of rank 0's backward; groups that it did not complete come last.
void GradientCollector::agree_on_order() {
  std::vector<std::int64_t> order(completed_.begin(), completed_.end());
  for (const int g : order_)
    if (std::find(completed_.begin(), completed_.end(), g) == completed_.end()) order.push_back(g);
  const at::Tensor shared = at::tensor(order, at::kLong);
  ranks_.broadcast(shared, 0);
  order_.assign(shared.data_ptr<std::int64_t>(), shared.data_ptr<std::int64_t>() + shared.numel());
  order_is_known_ = true;
}

void GradientCollector::drop() {
  in_backward_ = false;
  for (Group& group : trained_) group.group->drop_gradients();
}

}  // namespace zero
