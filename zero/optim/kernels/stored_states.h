#pragma once
// Stores fp32 states in fewer bytes, in flat tensors on one device. States are rounded stochastically to bf16, or split
// into bf16 and a remainder (base/numbers/stored_fp32.h). The results are the same bit for bit on a GPU and on the CPU
// with any number of threads. In a build without CUDA, device tensors throw (cuda/absent.cpp).
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

namespace zero {

/// The key of the random draws for a tensor's state. The other input of a draw is the element's index.
struct RoundingDraws {
  std::uint64_t seed = 0;
  std::int64_t step = 1;                // on a GPU, `numbers` has the step
  std::uint64_t stream = 0;             // rounding_stream()
  const at::Tensor* numbers = nullptr;  // StepNumbers on a GPU
};
std::uint64_t rounding_stream(const std::string& tensor, const std::string& state);

/// to <- from, fp32 to bf16, elements [first, first + n) of their tensor.
void round_stochastically(const at::Tensor& from, const at::Tensor& to, const RoundingDraws& draws, std::int64_t first);

/// weights (bf16) and remainder (kShort) <- master (fp32), and back.
void split_master(const at::Tensor& master, const at::Tensor& weights, const at::Tensor& remainder);
void join_master(const at::Tensor& weights, const at::Tensor& remainder, const at::Tensor& master);

/// Does the same on a GPU.
void device_round_stochastically(const at::Tensor& from, const at::Tensor& to, const RoundingDraws& draws,
                                 std::int64_t first);
void device_split_master(const at::Tensor& master, const at::Tensor& weights, const at::Tensor& remainder);
void device_join_master(const at::Tensor& weights, const at::Tensor& remainder, const at::Tensor& master);

}  // namespace zero
