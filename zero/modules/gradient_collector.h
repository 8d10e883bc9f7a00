#pragma once
// GradientCollector: the gradients of somebody else's backward. Each trained leaf has a hook that autograd calls when its
// gradient is whole; groups whose leaves all have theirs are packed and summed over ranks at once, in an order that all
// ranks share, and what is left when backward ends follows.
#include <memory>
#include <string>
#include <vector>

#include "zero/core/unit_groups.h"

namespace zero {

class GradientCollector {
 public:
  /// Sets the hooks. The groups, of one unit each, outlive this; it outlives every backward through the leaves.
  GradientCollector(UnitGroups& groups, Communicator& ranks);
  ~GradientCollector();
  GradientCollector(const GradientCollector&) = delete;
  GradientCollector& operator=(const GradientCollector&) = delete;

  /// Before and after the backward of a micro-batch. What leaves hold before it is dropped; a leaf without a gradient
  /// counts as zeros. Gradients are multiplied by `weight`; with 0 they are zeros, whatever autograd computes. Afterwards
  /// leaves hold stand-ins (gradient_stand_in.h). Throws InputError where none has a gradient. Collective.
  void begin(MicroBatch micro, double weight = 1);
  void finish();
  /// Gives up what the step has so far.
  void drop();

  /// By leaf: autograd has its gradient. Throws InputError outside of begin() and finish(), and for a second gradient
  /// in one backward.
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
  std::vector<int> order_;      // of trained_, in which sums are begun
  std::vector<int> completed_;  // in this backward, in their order
  std::size_t next_ = 0;        // of order_
  bool order_is_known_ = false;
  int arrivals_ = 0;  // in this backward
  MicroBatch micro_;
  double weight_ = 1;
  bool in_backward_ = false;
};

}  // namespace zero
