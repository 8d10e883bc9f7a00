#pragma once
// GradientCollector: collects the gradients of a backward that the user runs. A hook on each trained leaf runs when its
// gradient is complete. A group with all its gradients is packed and reduced at once, in an order that all ranks share;
// the rest follows after backward.
#include <memory>
#include <string>
#include <vector>

#include "zero/core/unit_groups.h"

namespace zero {

class GradientCollector {
 public:
  /// Sets the hooks. Groups have one unit each and must outlive this; it must outlive backwards through the leaves.
  GradientCollector(UnitGroups& groups, Communicator& ranks);
  ~GradientCollector();
  GradientCollector(const GradientCollector&) = delete;
  GradientCollector& operator=(const GradientCollector&) = delete;

  /// Call before and after a micro-batch's backward. begin() drops the leaves' old gradients; a leaf without a gradient
  /// counts as zeros. Gradients are multiplied by `weight`; 0 gives zeros, even for NaN. Afterwards leaves hold
  /// stand-ins (gradient_stand_in.h). InputError if no leaf has a gradient. Collective.
  void begin(MicroBatch micro, double weight = 1);
  void finish();
  /// Discards the step's gradients so far.
  void drop();

  /// Called by a leaf's hook when its gradient is complete. InputError outside begin() and finish(), and for a second
  /// gradient in one backward.
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
