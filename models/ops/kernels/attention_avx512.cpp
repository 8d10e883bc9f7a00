// Compiled for AVX-512 with bf16 (see CMakeLists.txt); other processors get attention_absent.cpp. Nothing in this file
// may run before the processor has been checked.
#include "models/ops/kernels/attention_kernels.h"

#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <optional>

#include "base/simd/targets.h"

#include "base/simd/row16.inl"

namespace zero::kernels {
namespace {

using namespace HWY_NAMESPACE;

HWY_INLINE __m512 raw(V v) { return v.part[0].raw; }
HWY_INLINE V vector(__m512 raw) { return {{hn::Vec<Floats>{raw}}}; }

constexpr std::int64_t block = 64;

#include "models/ops/kernels/block_product.inl"

#include "models/ops/kernels/tile_setting.inl"

#include "models/ops/kernels/tile_product.inl"

#include "models/ops/kernels/word_transpose.inl"

#include "models/ops/kernels/block_packing.inl"

#include "models/ops/kernels/block_dropout.inl"

std::int64_t padded(std::int64_t length) { return (length + block - 1) / block * block; }

/// Allocates 64-byte aligned parts of the workspace.
class Parts {
 public:
  explicit Parts(void* workspace) : next_(reinterpret_cast<std::uintptr_t>(workspace)) {}
  template <class T>
  T* take(std::int64_t count) {
    T* mine = reinterpret_cast<T*>(next_);
    next_ += (static_cast<std::size_t>(count) * sizeof(T) + 63) / 64 * 64;
    return mine;
  }
  std::uintptr_t next() const { return next_; }  // without a workspace: the bytes allocated

 private:
  std::uintptr_t next_;
};

/// The memory for one batch row and one kv head.
template <class T>
struct View {
  const AttentionProblem<T>& p;
  std::int64_t row, kv_head;

  std::int64_t group() const { return p.heads / p.kv_heads; }
  std::int64_t width_qkv() const { return (p.heads + 2 * p.kv_heads) * p.head_dim; }
  std::int64_t width_out() const { return p.heads * p.head_dim; }
  std::int64_t at_q(std::int64_t head) const { return row * p.length * width_qkv() + head * p.head_dim; }
  std::int64_t at_k() const { return at_q(p.heads + kv_head); }
  std::int64_t at_v() const { return at_q(p.heads + p.kv_heads + kv_head); }
  std::int64_t at_out(std::int64_t head) const { return row * p.length * width_out() + head * p.head_dim; }
  float* lse(std::int64_t head) const { return p.lse + (row * p.heads + head) * p.length; }
  DroppedHead dropped(std::int64_t head) const {
    return {p.drops, p.drops.first_sample + row, p.drops.first_head + head};
  }
  std::int32_t first(std::int64_t t) const { return p.first ? p.first[row * p.length + t] : 0; }
  std::int32_t gap(std::int64_t end, std::int64_t t) const {
    return p.gaps ? p.gaps[(end * p.rows + row) * p.length + t] : 0;
  }
  RowsOf<T> rows_qkv(std::int64_t at) const {
    return {p.qkv + at, width_qkv(), p.length, padded(p.length), p.head_dim};
  }
  RowsOf<T> rows_out(const T* base, std::int64_t head) const {
    return {base + at_out(head), width_out(), p.length, padded(p.length), p.head_dim};
  }
};

#include "models/ops/kernels/power_of_2.inl"

#include "models/ops/kernels/seen_keys.inl"

#include "models/ops/kernels/attention_forward.inl"

#include "models/ops/kernels/attention_backward.inl"

template <class T>
std::size_t workspace_bytes(std::int64_t length, std::int64_t head_dim) {
  const std::size_t forward = ForwardParts<T>(nullptr, length, head_dim, true).parts.next();
  const std::size_t backward = BackwardParts<T>(nullptr, length, head_dim, true).parts.next();
  return forward > backward ? forward : backward;
}

template <class T>
bool on_tiles(const AttentionProblem<T>& problem) {
  return sizeof(T) == 2 && problem.head_dim % TileProducts::multiple == 0 && has_tiles();
}

template <class T>
void forward(const AttentionProblem<T>& problem, std::int64_t row, std::int64_t kv_head, void* workspace) {
  const auto pass = on_tiles(problem) ? forward_by<TileProducts, T> : forward_by<VectorProducts, T>;
  pass(problem, row, kv_head, workspace);
}

template <class T>
void backward(const AttentionProblem<T>& problem, std::int64_t row, std::int64_t kv_head, void* workspace) {
  const auto pass = on_tiles(problem) ? backward_by<TileProducts, T> : backward_by<VectorProducts, T>;
  pass(problem, row, kv_head, workspace);
}

template <class T>
constexpr AttentionKernels<T> all_kernels{forward<T>, backward<T>, workspace_bytes<T>};

bool has_avx512() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
}

}  // namespace

template <>
const AttentionKernels<float>* attention_kernels<float>() {
  return has_avx512() ? &all_kernels<float> : nullptr;
}
template <>
const AttentionKernels<Bf16>* attention_kernels<Bf16>() {
  return has_avx512() && __builtin_cpu_supports("avx512bf16") ? &all_kernels<Bf16> : nullptr;
}

}  // namespace zero::kernels
