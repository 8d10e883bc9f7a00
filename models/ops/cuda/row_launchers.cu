#include "models/ops/cuda/row_launchers.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <stdexcept>
#include <string>

namespace zero::cuda {
namespace {

constexpr int threads = 256;
constexpr int warps = threads / 32;

__device__ float load(float x) { return x; }
__device__ float load(__nv_bfloat16 x) { return __bfloat162float(x); }
__device__ float load(__half x) { return __half2float(x); }
template <class T>
__device__ T store(float x);
template <>
__device__ float store<float>(float x) {
  return x;
}
template <>
__device__ __nv_bfloat16 store<__nv_bfloat16>(float x) {
  return __float2bfloat16_rn(x);
}
template <>
__device__ __half store<__half>(float x) {
  return __float2half_rn(x);
}

/// 16 bytes of elements.
template <class T>
struct alignas(16) Pack {
  static constexpr int size = 16 / sizeof(T);
  T at[size];
};

/// The same sum in every thread of the block. `shared` has a float for each warp and is free again when the block is in
/// step.
__device__ float block_sum(float value, float* shared) {
  for (int lane = 16; lane > 0; lane /= 2) value += __shfl_xor_sync(0xffffffffu, value, lane);
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = value;
  __syncthreads();
  float sum = 0;
  for (int w = 0; w < warps; ++w) sum += shared[w];
  __syncthreads();
  return sum;
}

template <class T>
__global__ void __launch_bounds__(threads) rms_norm_kernel(RmsNormJob job) {
  __shared__ float shared[warps];
  const std::int64_t row = blockIdx.x;
  const auto* x = static_cast<const Pack<T>*>(job.x) + row * (job.hidden / Pack<T>::size);
  const auto* weight = static_cast<const Pack<T>*>(job.weight);
  auto* y = static_cast<Pack<T>*>(job.y) + row * (job.hidden / Pack<T>::size);
  const int packs = job.hidden / Pack<T>::size;
  float rstd;
  if (job.again) {
    rstd = job.rstd[row];
  } else {
    float sum = 0;
    for (int i = threadIdx.x; i < packs; i += threads) {
      const Pack<T> p = x[i];
#pragma unroll
      for (int k = 0; k < Pack<T>::size; ++k) sum += load(p.at[k]) * load(p.at[k]);
    }
    rstd = rsqrtf(block_sum(sum, shared) / float(job.hidden) + job.eps);
    if (threadIdx.x == 0) job.rstd[row] = rstd;
  }
  for (int i = threadIdx.x; i < packs; i += threads) {
    const Pack<T> p = x[i], w = weight[i];
    Pack<T> out;
#pragma unroll
    for (int k = 0; k < Pack<T>::size; ++k) out.at[k] = store<T>(load(p.at[k]) * rstd * load(w.at[k]));
    y[i] = out;
  }
}

// A block takes one run of rows. Each thread owns columns, whose sums of dy * n it keeps in shared memory: no atomics.
template <class T>
__global__ void __launch_bounds__(threads) rms_norm_backward_kernel(RmsNormBackwardJob job) {
  extern __shared__ float column_sums[];
  __shared__ float shared[warps];
  const int packs = job.hidden / Pack<T>::size;
  const auto* weight = static_cast<const Pack<T>*>(job.weight);
  if (job.partial_dweight)
    for (int i = threadIdx.x; i < packs; i += threads)
      for (int k = 0; k < Pack<T>::size; ++k) column_sums[i * Pack<T>::size + k] = 0;
  const std::int64_t each = (job.rows + job.parts - 1) / job.parts, begin = blockIdx.x * each;
  const std::int64_t end = begin + each < job.rows ? begin + each : job.rows;
  for (std::int64_t row = begin; row < end; ++row) {
    const auto* dy = static_cast<const Pack<T>*>(job.dy) + row * packs;
    const auto* x = static_cast<const Pack<T>*>(job.x) + row * packs;
    auto* dx = static_cast<Pack<T>*>(job.dx) + row * packs;
    const float rstd = job.rstd[row];
    float dot = 0;
    for (int i = threadIdx.x; i < packs; i += threads) {
      const Pack<T> d = dy[i], p = x[i], w = weight[i];
#pragma unroll
      for (int k = 0; k < Pack<T>::size; ++k) {
        const float n = load(p.at[k]) * rstd, g = load(d.at[k]);
        dot += g * load(w.at[k]) * n;
        if (job.partial_dweight) column_sums[i * Pack<T>::size + k] += g * n;
      }
    }
    const float mean = block_sum(dot, shared) / float(job.hidden);
    for (int i = threadIdx.x; i < packs; i += threads) {
      const Pack<T> d = dy[i], p = x[i], w = weight[i];
      Pack<T> out;
#pragma unroll
      for (int k = 0; k < Pack<T>::size; ++k)
        out.at[k] = store<T>(rstd * (load(d.at[k]) * load(w.at[k]) - load(p.at[k]) * rstd * mean));
      dx[i] = out;
    }
  }
  if (job.partial_dweight)
    for (int i = threadIdx.x; i < packs; i += threads)
      for (int k = 0; k < Pack<T>::size; ++k)
        job.partial_dweight[std::int64_t(blockIdx.x) * job.hidden + i * Pack<T>::size + k] =
            column_sums[i * Pack<T>::size + k];
}

template <class T>
__global__ void __launch_bounds__(threads) swiglu_kernel(SwigluJob job) {
  const std::int64_t row_packs = job.inner / Pack<T>::size, all = job.rows * row_packs;
  const auto* in = static_cast<const Pack<T>*>(job.gate_up);
  const auto* dy = static_cast<const Pack<T>*>(job.dy);
  auto* out = static_cast<Pack<T>*>(job.out);
  for (std::int64_t i = std::int64_t(blockIdx.x) * threads + threadIdx.x; i < all;
       i += std::int64_t(gridDim.x) * threads) {
    const std::int64_t row = i / row_packs, column = i % row_packs, gate_at = row * 2 * row_packs + column,
                       up_at = gate_at + row_packs;
    const Pack<T> gate = in[gate_at], up = in[up_at];
    Pack<T> first, second;
    Pack<T> d;
    if (dy) d = dy[i];
#pragma unroll
    for (int k = 0; k < Pack<T>::size; ++k) {
      const float g = load(gate.at[k]), u = load(up.at[k]), s = 1.0f / (1.0f + __expf(-g));
      if (dy) {
        first.at[k] = store<T>(load(d.at[k]) * u * s * (1.0f + g * (1.0f - s)));
        second.at[k] = store<T>(load(d.at[k]) * g * s);
      } else {
        first.at[k] = store<T>(g * s * u);
      }
    }
    if (dy) {
      out[gate_at] = first;
      out[up_at] = second;
    } else {
      out[i] = first;
    }
  }
}

template <class T>
__global__ void __launch_bounds__(threads) rotate_kernel(RotateJob job) {
  const std::int64_t token = blockIdx.x;
  const int half = job.head_dim / 2, turned = job.heads * half;
  const std::int64_t position = job.positions ? job.positions[token] : token % job.seq;
  const T* in = static_cast<const T*>(job.qkv) + token * job.width;
  T* out = static_cast<T*>(job.out) + token * job.width;
  const float *cos = job.cos + position * half, *sin = job.sin + position * half;
  for (int i = threadIdx.x; i < turned; i += threads) {
    const int head = i / half, j = i % half, at = head * job.head_dim + j;
    const float a = load(in[at]), b = load(in[at + half]), c = cos[j], s = job.back ? -sin[j] : sin[j];
    out[at] = store<T>(a * c - b * s);
    out[at + half] = store<T>(b * c + a * s);
  }
  for (int i = turned * 2 + threadIdx.x; i < job.width; i += threads) out[i] = in[i];
}

/// The part of a row's logits that is whole vectors: all of it where rows begin at multiples of 16 bytes, else nothing.
template <class T>
__device__ int whole_packs(const CrossEntropyJob& job) {
  const bool aligned = job.vocabulary % Pack<T>::size == 0 && reinterpret_cast<std::uintptr_t>(job.logits) % 16 == 0;
  return aligned ? job.vocabulary / Pack<T>::size : 0;
}

// One pass: each thread keeps its running maximum and the sum of exponentials below it.
template <class T>
__global__ void __launch_bounds__(threads) cross_entropy_kernel(CrossEntropyJob job) {
  __shared__ float maxima[warps];
  __shared__ float sums[warps];
  const std::int64_t row = blockIdx.x, target = job.targets[row];
  const T* logits = static_cast<const T*>(job.logits) + row * job.vocabulary;
  float highest = -INFINITY, sum = 0;
  const int packs = whole_packs<T>(job);
  for (int i = threadIdx.x; i < packs; i += threads) {
    const Pack<T> p = reinterpret_cast<const Pack<T>*>(logits)[i];
    float top = highest;
#pragma unroll
    for (int k = 0; k < Pack<T>::size; ++k) top = fmaxf(top, load(p.at[k]));
    if (top > highest) sum *= __expf(highest - top);
    highest = top;
#pragma unroll
    for (int k = 0; k < Pack<T>::size; ++k) sum += __expf(load(p.at[k]) - highest);  // NaN included: it stays one
  }
  for (int i = packs * Pack<T>::size + threadIdx.x; i < job.vocabulary; i += threads) {
    const float x = load(logits[i]);
    if (x > highest) {
      sum = sum * __expf(highest - x) + 1.0f;
      highest = x;
    } else {
      sum += __expf(x - highest);  // NaN and -inf included: a NaN stays one
    }
  }
  float warp_highest = highest;
  for (int lane = 16; lane > 0; lane /= 2)
    warp_highest = fmaxf(warp_highest, __shfl_xor_sync(0xffffffffu, warp_highest, lane));
  if (threadIdx.x % 32 == 0) maxima[threadIdx.x / 32] = warp_highest;
  __syncthreads();
  float all_highest = maxima[0];
  for (int w = 1; w < warps; ++w) all_highest = fmaxf(all_highest, maxima[w]);
  sum = highest == -INFINITY && sum == 0 ? 0 : sum * __expf(highest - all_highest);
  const float total = block_sum(sum, sums);
  if (threadIdx.x != 0) return;
  const float lse = all_highest + __logf(total);
  job.lse[row] = lse;
  job.losses[row] = target < 0 ? 0.0f : target < job.vocabulary ? lse - load(logits[target]) : NAN;
}

template <class T>
__global__ void __launch_bounds__(threads) cross_entropy_backward_kernel(CrossEntropyJob job) {
  const std::int64_t row = blockIdx.x, target = job.targets[row];
  T* logits = static_cast<T*>(job.logits) + row * job.vocabulary;
  const float lse = job.lse[row], scale = target < 0 ? 0.0f : *job.scale;
  const int packs = whole_packs<T>(job);
  for (int i = threadIdx.x; i < packs; i += threads) {
    Pack<T> d = reinterpret_cast<Pack<T>*>(logits)[i];
#pragma unroll
    for (int k = 0; k < Pack<T>::size; ++k) {
      const float p = target < 0 ? 0.0f : __expf(load(d.at[k]) - lse);
      d.at[k] = store<T>((p - (i * Pack<T>::size + k == target ? 1.0f : 0.0f)) * scale);
    }
    reinterpret_cast<Pack<T>*>(logits)[i] = d;
  }
  for (int i = packs * Pack<T>::size + threadIdx.x; i < job.vocabulary; i += threads) {
    const float p = target < 0 ? 0.0f : __expf(load(logits[i]) - lse);
    logits[i] = store<T>((p - (i == target ? 1.0f : 0.0f)) * scale);
  }
}

__device__ std::uint32_t high_product(std::uint32_t a, std::uint32_t b) {
  return std::uint32_t(std::uint64_t(a) * b >> 32);
}

// A thread draws one block of philox.h, four words, which lie eight columns apart: eight threads in a row write 32
// columns.
template <class T>
__global__ void __launch_bounds__(threads) dropout_mask_kernel(DropoutMaskJob job) {
  const std::int64_t row_blocks = (job.columns + 31) / 32 * 8, all = job.rows * row_blocks;
  for (std::int64_t i = std::int64_t(blockIdx.x) * threads + threadIdx.x; i < all;
       i += std::int64_t(gridDim.x) * threads) {
    const std::int64_t row = i / row_blocks, block = i % row_blocks;
    const std::uint64_t stream =
        std::uint64_t(job.first_sample + row / job.sequence) << 32 | std::uint64_t(row % job.sequence);
    std::uint32_t word[4] = {std::uint32_t(block), std::uint32_t(std::uint64_t(block) >> 32), std::uint32_t(stream),
                             std::uint32_t(stream >> 32)};
    std::uint32_t low_key = std::uint32_t(job.seed), high_key = std::uint32_t(job.seed >> 32);
#pragma unroll
    for (int round = 0; round < 10; ++round) {
      const std::uint32_t high0 = high_product(word[0], 0xD2511F53u), high1 = high_product(word[2], 0xCD9E8D57u);
      const std::uint32_t low0 = word[0] * 0xD2511F53u, low1 = word[2] * 0xCD9E8D57u;
      word[0] = high1 ^ word[1] ^ low_key;
      word[1] = low1;
      word[2] = high0 ^ word[3] ^ high_key;
      word[3] = low0;
      low_key += 0x9E3779B9u;
      high_key += 0xBB67AE85u;
    }
    T* out = static_cast<T*>(job.mask) + row * job.columns;
#pragma unroll
    for (int w = 0; w < 4; ++w) {
      const std::int64_t column = block / 8 * 32 + w * 8 + block % 8;
      if (column < job.columns) out[column] = store<T>(word[w] < job.threshold ? 0.0f : job.kept);
    }
  }
}

void check_launch(const char* what) {
  const cudaError_t error = cudaGetLastError();
  if (error != cudaSuccess) throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(error));
}

/// f(T{}) for the type of the rows.
template <class F>
void by_type(Number type, F f) {
  switch (type) {
    case Number::fp32:
      f(float{});
      break;
    case Number::bf16:
      f(__nv_bfloat16{});
      break;
    case Number::fp16:
      f(__half{});
      break;
    default:
      throw std::runtime_error("rows are fp32, bf16 or fp16");
  }
}

cudaStream_t stream_of(const Stream& stream) { return static_cast<cudaStream_t>(stream.handle); }

}  // namespace

void rms_norm(const RmsNormJob& job, Stream stream) {
  if (job.rows == 0) return;
  by_type(stream.type,
          [&](auto t) { rms_norm_kernel<decltype(t)><<<unsigned(job.rows), threads, 0, stream_of(stream)>>>(job); });
  check_launch("rms_norm");
}

void rms_norm_backward(const RmsNormBackwardJob& job, Stream stream) {
  if (job.parts == 0) return;
  const std::size_t bytes = job.partial_dweight ? job.hidden * sizeof(float) : 0;
  by_type(stream.type, [&](auto t) {
    rms_norm_backward_kernel<decltype(t)><<<unsigned(job.parts), threads, bytes, stream_of(stream)>>>(job);
  });
  check_launch("rms_norm_backward");
}

void swiglu(const SwigluJob& job, Stream stream) {
  if (job.rows == 0) return;
  by_type(stream.type, [&](auto t) {
    const std::int64_t packs = job.rows * (job.inner / Pack<decltype(t)>::size),
                       blocks = (packs + threads - 1) / threads;
    swiglu_kernel<decltype(t)><<<unsigned(blocks < 65536 ? blocks : 65536), threads, 0, stream_of(stream)>>>(job);
  });
  check_launch("swiglu");
}

void rotate(const RotateJob& job, Stream stream) {
  if (job.tokens == 0) return;
  by_type(stream.type,
          [&](auto t) { rotate_kernel<decltype(t)><<<unsigned(job.tokens), threads, 0, stream_of(stream)>>>(job); });
  check_launch("rotate");
}

void cross_entropy(const CrossEntropyJob& job, Stream stream) {
  if (job.rows == 0) return;
  by_type(stream.type, [&](auto t) {
    cross_entropy_kernel<decltype(t)><<<unsigned(job.rows), threads, 0, stream_of(stream)>>>(job);
  });
  check_launch("cross_entropy");
}

void dropout_mask(const DropoutMaskJob& job, Stream stream) {
  if (job.rows == 0 || job.columns == 0) return;
  const std::int64_t blocks = (job.rows * ((job.columns + 31) / 32 * 8) + threads - 1) / threads;
  by_type(stream.type, [&](auto t) {
    dropout_mask_kernel<decltype(t)><<<unsigned(blocks < 65536 ? blocks : 65536), threads, 0, stream_of(stream)>>>(job);
  });
  check_launch("dropout_mask");
}

void cross_entropy_backward(const CrossEntropyJob& job, Stream stream) {
  if (job.rows == 0) return;
  by_type(stream.type, [&](auto t) {
    cross_entropy_backward_kernel<decltype(t)><<<unsigned(job.rows), threads, 0, stream_of(stream)>>>(job);
  });
  check_launch("cross_entropy_backward");
}

}  // namespace zero::cuda
