#pragma once
// Launchers of the optimizer's kernels. Includes neither LibTorch nor CUDA's headers; a stream is a cudaStream_t. No
// float atomics.
#include <cstdint>

#include "base/numbers/number.h"

namespace zero::cuda {

void add_sum_of_squares(const void* flat, Number type, std::int64_t n, double* scratch, int blocks, double* sum,
                        void* stream);

struct JudgeJob {
  double* numbers;  // StepNumbers
  double max_norm, loss_scale, beta1, beta2;
};
void judge_step(const JudgeJob& job, void* stream);

struct AdamWJob {
  void* master;
  void* m;
  void* v;
  const void* gradient;
  void* weights;  // null: the weights are their own master
  Number state, gradient_type, weight_type;
  std::int64_t n;
  double lr, beta1, beta2, eps, weight_decay;
  const double* numbers;
};
void adamw(const AdamWJob& job, void* stream);

}  // namespace zero::cuda
