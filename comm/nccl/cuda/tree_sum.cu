#include "comm/nccl/cuda/tree_sum.h"

#include <stdexcept>
#include <string>

#include "base/numbers/device_numbers.cuh"

namespace zero::cuda {
namespace {

constexpr int threads = 256;
constexpr int levels = 7;  // 127 vectors: more than the GPUs of one NVLink domain

// The tree as a binary counter: after r vectors, the set bits of r hold partial sums. Unrolling makes every index a
// constant, so partial sums stay in registers. All threads take the same branches.
template <class In, class Out, class S, int V>
__global__ void __launch_bounds__(threads) tree_sum_kernel(TreeSum job) {
  const std::int64_t packs = job.n / V, stride = std::int64_t(gridDim.x) * threads;
  for (std::int64_t i = std::int64_t(blockIdx.x) * threads + threadIdx.x; i < packs; i += stride) {
    S partial[levels][V];
    const auto* in = static_cast<const Vector<In, V>*>(job.inputs) + i;
    for (int r = 0; r < job.vectors; ++r) {
      const Vector<In, V> pack = in[r * packs];
      S value[V];
#pragma unroll
      for (int v = 0; v < V; ++v) value[v] = load<S>(pack.at[v]);
      bool stored = false;
#pragma unroll
      for (int level = 0; level < levels; ++level) {
        if (stored) continue;
        const bool full = r >> level & 1;
#pragma unroll
        for (int v = 0; v < V; ++v) {
          if (full)
            value[v] = partial[level][v] + value[v];
          else
            partial[level][v] = value[v];
        }
        stored = !full;
      }
    }
    S sum[V]{};
    bool begun = false;
#pragma unroll
    for (int level = 0; level < levels; ++level) {
      if (!(job.vectors >> level & 1)) continue;
#pragma unroll
      for (int v = 0; v < V; ++v) sum[v] = begun ? partial[level][v] + sum[v] : partial[level][v];
      begun = true;
    }
    auto* out = static_cast<Vector<Out, V>*>(job.output) + i;
    Vector<Out, V> result;
    if (job.accumulate) result = *out;
#pragma unroll
    for (int v = 0; v < V; ++v) result.at[v] = store<Out>(job.accumulate ? load<S>(result.at[v]) + sum[v] : sum[v]);
    *out = result;
  }
}

template <class In, class Out, class S>
void launch(const TreeSum& job, cudaStream_t stream) {
  constexpr int v = sizeof(S) == 8 ? 2 : 4;
  const auto address = reinterpret_cast<std::uintptr_t>(job.inputs) | reinterpret_cast<std::uintptr_t>(job.output);
  const bool wide = job.n % v == 0 && address % (v * (sizeof(In) > sizeof(Out) ? sizeof(In) : sizeof(Out))) == 0;
  const std::int64_t packs = wide ? job.n / v : job.n;
  const auto blocks =
      static_cast<unsigned>((packs + threads - 1) / threads < 4096 ? (packs + threads - 1) / threads : 4096);
  if (wide)
    tree_sum_kernel<In, Out, S, v><<<blocks, threads, 0, stream>>>(job);
  else
    tree_sum_kernel<In, Out, S, 1><<<blocks, threads, 0, stream>>>(job);
}

template <class In, class S>
bool launch_to(const TreeSum& job, cudaStream_t stream) {
  switch (job.out) {
    case Number::fp32:
      launch<In, float, S>(job, stream);
      return true;
    case Number::bf16:
      launch<In, __nv_bfloat16, S>(job, stream);
      return true;
    case Number::fp16:
      launch<In, __half, S>(job, stream);
      return true;
    case Number::fp64:
      launch<In, double, S>(job, stream);
      return true;
    default:
      return false;
  }
}

template <class S>
bool launch_floating(const TreeSum& job, cudaStream_t stream) {
  switch (job.in) {
    case Number::fp32:
      return launch_to<float, S>(job, stream);
    case Number::bf16:
      return launch_to<__nv_bfloat16, S>(job, stream);
    case Number::fp16:
      return launch_to<__half, S>(job, stream);
    case Number::fp64:
      return sizeof(S) == 8 && launch_to<double, double>(job, stream);
    default:
      return false;
  }
}

bool launch_any(const TreeSum& job, cudaStream_t stream) {
  if (job.in == Number::int32 && job.out == job.in) return launch<int, int, int>(job, stream), true;
  if (job.in == Number::int64 && job.out == job.in)
    return launch<std::int64_t, std::int64_t, std::int64_t>(job, stream), true;
  if (job.sum == Number::fp64) return launch_floating<double>(job, stream);
  return job.sum == Number::fp32 && launch_floating<float>(job, stream);
}

}  // namespace

void tree_sum(const TreeSum& job, void* stream) {
  if (job.n == 0) return;
  if (job.vectors < 1 || job.vectors >= 1 << levels)
    throw std::runtime_error("tree_sum: " + std::to_string(job.vectors) + " vectors");
  if (!launch_any(job, static_cast<cudaStream_t>(stream)))
    throw std::runtime_error("tree_sum: these number types do not go together");
  const cudaError_t error = cudaGetLastError();
  if (error != cudaSuccess) throw std::runtime_error(std::string("tree_sum: ") + cudaGetErrorString(error));
}

}  // namespace zero::cuda
