#pragma once
// FirstStepDump: writes logits and gradients of step 1 to one safetensors file, to compare with another implementation.
#include <ATen/core/Tensor.h>

#include <string>
#include <utility>
#include <vector>

#include "zero/train/step_observer.h"
#include "zero/train/training_batches.h"

namespace zero {

/// The file holds tensors in fp32: "logits" [global batch, longest row, vocabulary], "loss" [], and "grad.NAME" of
/// every trained tensor, before clipping. Logits are in the order of rows, and shorter rows are padded with zeros. Rank
/// 0 holds all tensors until they are written, so this is meant for small models.
class FirstStepDump final : public StepObserver {
 public:
  /// If `path` is empty, nothing is written. The other arguments must outlive the observer.
  FirstStepDump(std::string path, Engine& engine, TrainingBatches& batches)
      : path_(std::move(path)), engine_(engine), batches_(batches) {}

  /// Runs the micro-batches of step 1 once more, without gradients.
  void before_step(Step& step) override;
  /// Gathers the gradients of step 1 and writes the file on rank 0.
  void gradients_ready(const Step& step) override;

 private:
  void add_logits(const ForwardContext& context);
  void finish(double denominator);

  std::string path_;
  Engine& engine_;
  TrainingBatches& batches_;
  std::vector<at::Tensor> logits_;  // rank 0
  double loss_sum_ = 0;
};

}  // namespace zero
