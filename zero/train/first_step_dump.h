#pragma once
// FirstStepDump: logits and gradients of step 1 in one safetensors file, for comparing with another implementation.
#include <ATen/core/Tensor.h>

#include <string>
#include <utility>
#include <vector>

#include "zero/core/engine.h"

namespace zero {

/// The file holds, in fp32: "logits" [global batch, longest row, vocabulary] in the order of rows, zeros behind the end
/// of shorter ones, "loss" [], and "grad.NAME" of every trained tensor, before clipping. Rank 0 holds all of it until
/// it is written: meant for small models.
class FirstStepDump {
 public:
  FirstStepDump(std::string path, Engine& engine) : path_(std::move(path)), engine_(engine) {}

  /// Before each micro-batch of step 1: runs it once more, without gradients. Collective.
  void add_logits(const ForwardContext& context);
  /// After the last backward and before the update: gathers the gradients, writes the file on rank 0. `denominator`: of the
  /// step's loss. Collective.
  void finish(double denominator);

 private:
  std::string path_;
  Engine& engine_;
  std::vector<at::Tensor> logits_;  // rank 0
  double loss_sum_ = 0;
};

}  // namespace zero
