#pragma once
// Dynamic loss scaling for fp16, by the rule of torch.amp.GradScaler: halve on overflow, double after a clean stretch.
#include <cstdint>
#include <string>

namespace zero {

struct LossScaleOptions {
  double start = 65536.0;
  double floor = 1.0;                   // an overflow at this scale ends the run
  double ceiling = 16777216.0;          // 2^24: beyond it the scaled loss of fp32 loses nothing but range
  std::int64_t growth_interval = 2000;  // clean steps before the scale doubles
  std::string rates = "optimizer.lr";   // the keys to lower, for messages
};

/// The part of a loss scale that checkpoints hold.
struct LossScaleState {
  double scale = 0;
  std::int64_t clean_steps = 0;
  std::int64_t skipped_steps = 0;

  bool operator==(const LossScaleState&) const = default;
};

/// Every rank holds one and tells it the same of every step, so all scales stay equal.
class LossScale {
 public:
  explicit LossScale(const LossScaleOptions& options = {});

  /// The loss is multiplied by it; gradients are divided by it before clipping.
  double scale() const { return scale_; }
  /// An overflow now would end the run.
  bool at_floor() const { return scale_ <= options_.floor; }
  std::int64_t clean_steps() const { return clean_steps_; }
  std::int64_t skipped_steps() const { return skipped_steps_; }

  /// After the step's gradients are reduced, with the agreement of all ranks. Returns whether the step is taken.
  /// Throws Error when gradients overflow at the floor.
  bool update(bool finite);

  /// After the last of `steps` steps: throws Error where every one was skipped, or where the last loss is not finite.
  /// The weights are then no result of training.
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
