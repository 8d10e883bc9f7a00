#pragma once
// TensorSpec: one tensor as the outside world knows it (checkpoints, safetensors, metrics). No LibTorch.
#include <cstdint>
#include <string>
#include <vector>

namespace zero {

struct TensorSpec {
  std::string name;  // Hugging Face name
  std::vector<std::int64_t> shape;

  std::int64_t numel() const {
    std::int64_t n = 1;
    for (std::int64_t d : shape) n *= d;
    return n;
  }
};

}  // namespace zero
