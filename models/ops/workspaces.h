#pragma once
// Workspaces: memory for kernels that several threads run at a time.
#include <ATen/ATen.h>

#include <cstdint>

namespace zero {

/// `count` workspaces of `bytes` each, aligned to 64 bytes, on the device of `like`. They are one tensor, so the meta
/// device counts them.
class Workspaces {
 public:
  Workspaces(std::int64_t count, std::int64_t bytes, const at::Tensor& like)
      : stride_(bytes + alignment), all_(at::empty({count, stride_}, like.options().dtype(at::kByte))) {}

  void* operator[](std::int64_t i) const {
    char* const at = static_cast<char*>(all_.data_ptr()) + i * stride_;
    return at + (alignment - reinterpret_cast<std::uintptr_t>(at) % alignment) % alignment;
  }

 private:
  static constexpr std::int64_t alignment = 64;
  std::int64_t stride_;
  at::Tensor all_;
};

}  // namespace zero
