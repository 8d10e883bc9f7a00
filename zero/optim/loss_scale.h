#pragma once
// Dynamic loss scaling for fp16, by the rule of torch.amp.GradScaler: it halves the scale on overflow and doubles it
// after a run of clean steps.
#include <cstdint>
#include <string>

namespace zero {

struct LossScaleOptions {
  double start = 65536.0;
  double floor = 1.0;                   // an overflow at this scale ends the run
  double ceiling = 16777216.0;          // 2^24: above it the scaled fp32 loss would only lose range
  std::int64_t growth_interval = 2000;  // clean steps before the scale doubles
  std::string rates = "optimizer.lr";   // the keys to lower, for messages
};

/// The part of a LossScale that a resumed run restores.
struct LossScaleState {
  double scale = 0;
  std::int64_t clean_steps = 0;
  std::int64_t skipped_steps = 0;

  bool operator==(const LossScaleState&) const = default;
};

/// Every rank has a LossScale and reports the same results to it, so all scales stay equal.
class LossScale {
 public:
  explicit LossScale(const LossScaleOptions& options = {});

  /// Factor of the loss. Gradients are divided by it before clipping.
  double scale() const { return scale_; }
  /// True if an overflow now would end the run.
  bool at_floor() const { return scale_ <= options_.floor; }
  std::int64_t clean_steps() const { return clean_steps_; }
  std::int64_t skipped_steps() const { return skipped_steps_; }

  /// Call it after the step's gradients are reduced. All ranks pass the same `finite`. Returns true if the step is
  /// taken. Throws Error if gradients overflow at the floor.
  bool update(bool finite);

  /// Call it after the last of `steps` steps. Throws Error if every step was skipped, or if the last loss is not
  /// finite, since the weights are then not a result of training.
  void require_trained(std::int64_t steps, double last_loss) const;

  /// For checkpoints.
  LossScaleState state() const { return {scale_, clean_steps_, skipped_steps_}; }
  void restore(double scale, std::int64_t clean_steps, std::int64_t skipped_steps);
  void restore(const LossScaleState& state) { restore(state.scale, state.clean_steps, state.skipped_steps); }

 private:
  LossScaleOptions options_;
  double scale_;
  std::int64_t clean_steps_ = 0;
  std::int64_t skipped_steps_ = 0;
};

}  // namespace zero
