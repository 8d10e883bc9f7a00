#pragma once
// GradientCollector: collects the gradients of a backward pass that the user runs. A hook on each trained leaf runs
// when the leaf's gradient is complete. A group that has all its gradients is packed and reduced at once, in an order
// that all ranks share. The other groups follow after backward.
#include <memory>
#include <string>
#include <vector>

#include "zero/core/unit_groups.h"

namespace zero {

class GradientCollector {
 public:
  /// Sets the hooks. Each group belongs to one unit. Groups must outlive the collector, and the collector must outlive
  /// backward passes through the leaves.
  GradientCollector(UnitGroups& groups, Communicator& ranks);
  ~GradientCollector();
  GradientCollector(const GradientCollector&) = delete;
  GradientCollector& operator=(const GradientCollector&) = delete;

  /// Call begin() before a micro-batch's backward and finish() after it. begin() drops the leaves' old gradients; a
  /// leaf without a gradient counts as zeros. Gradients are multiplied by `weight`; weight 0 gives zeros, even for NaN.
  /// After finish() leaves hold stand-ins (gradient_stand_in.h). Throws InputError if no leaf has a gradient.
  /// Collective.
  void begin(MicroBatch micro, double weight = 1);
  void finish();
  /// Discards the step's gradients so far.
  void drop();

  /// A leaf's hook calls it when the leaf's gradient is complete. Throws InputError outside begin() and finish(), and
  /// for a second gradient in one backward.
  void arrived(int group, int leaf);

 private:
  struct Leaf {
    std::string name;
    at::Tensor parameter, stand_in;
    bool arrived = false;
  };
  struct Group {
    ParameterGroup* group = nullptr;
    std::vector<Leaf> leaves = {};
    int missing = 0;
  };
  void set_hooks(int group);
  void weigh(Group& group) const;
  void reduce(Group& group);
  void reduce_in_order();
  void agree_on_order();

  UnitGroups& groups_;
  Communicator& ranks_;
  std::vector<Group> trained_;
  std::vector<int> order_;      // indices into trained_, in the order of reduction
  std::vector<int> completed_;  // in this backward, in order of completion
  std::size_t next_ = 0;        // index into order_
  bool order_is_known_ = false;
  int arrivals_ = 0;  // in this backward
  MicroBatch micro_;
  double weight_ = 1;
  bool in_backward_ = false;
};

}  // namespace zero
