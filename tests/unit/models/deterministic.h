#pragma once
#include <ATen/Context.h>
#include <ATen/Parallel.h>

#include "models/nn/matmul_setting.h"

namespace zero::test {

/// Turns on LibTorch's deterministic algorithms while it lives, then restores that setting and the number of threads.
class Deterministic {
 public:
  Deterministic() { choose_deterministic_products(); }
  ~Deterministic() {
    at::globalContext().setDeterministicAlgorithms(false, false);
    at::set_num_threads(threads_);
  }

 private:
  int threads_ = at::get_num_threads();
};

}  // namespace zero::test
