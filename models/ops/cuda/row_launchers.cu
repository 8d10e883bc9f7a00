#include "models/ops/cuda/row_vectors.cuh"

namespace zero::cuda {
namespace {

constexpr unsigned max_blocks_y = 65535;

/// Returns the block's sum to all its threads. `shared` has a float per warp and can be reused after the next
/// synchronisation.
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

// A block processes one run of rows. Each thread owns columns and keeps their sums of dy * n in shared memory: no
// atomics.
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
    const auto* beside = static_cast<const Pack<T>*>(job.beside);
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
      Pack<T> out, more;
      if (beside) more = beside[row * packs + i];
#pragma unroll
      for (int k = 0; k < Pack<T>::size; ++k) {
        const float own = rstd * (load(d.at[k]) * load(w.at[k]) - load(p.at[k]) * rstd * mean);
        out.at[k] = store<T>(beside ? own + load(more.at[k]) : own);
      }
      dx[i] = out;
    }
  }
  if (job.partial_dweight)
    for (int i = threadIdx.x; i < packs; i += threads)
      for (int k = 0; k < Pack<T>::size; ++k)
        job.partial_dweight[std::int64_t(blockIdx.x) * job.hidden + i * Pack<T>::size + k] =
            column_sums[i * Pack<T>::size + k];
}

// Blocks along a row in x, runs of rows in y.
template <class T>
__global__ void __launch_bounds__(threads) swiglu_kernel(SwigluJob job) {
  const int row_packs = job.inner / Pack<T>::size, column = blockIdx.x * threads + threadIdx.x;
  if (column >= row_packs) return;
  const auto* dy = static_cast<const Pack<T>*>(job.dy);
  for (std::int64_t row = blockIdx.y; row < job.rows; row += gridDim.y) {
    const std::int64_t wide = row * 2 * row_packs + column, narrow = row * row_packs + column;
    const auto* in = static_cast<const Pack<T>*>(job.gate_up) + wide;
    const Pack<T> gate = in[0], up = in[row_packs];
    Pack<T> first, second, d;
    if (dy) d = dy[narrow];
#pragma unroll
    for (int k = 0; k < Pack<T>::size; ++k) {
      const float g = load(gate.at[k]), u = load(up.at[k]), s = __fdividef(1.0f, 1.0f + __expf(-g));
      if (dy) {
        first.at[k] = store<T>(load(d.at[k]) * u * s * (1.0f + g * (1.0f - s)));
        second.at[k] = store<T>(load(d.at[k]) * g * s);
      } else {
        first.at[k] = store<T>(g * s * u);
      }
    }
    auto* out = static_cast<Pack<T>*>(job.out) + (dy ? wide : narrow);
    out[0] = first;
    if (dy) out[row_packs] = second;
  }
}

/// How many of a row's logits are read as whole vectors: all if rows start at multiples of 16 bytes, otherwise none.
template <class T>
__device__ int whole_packs(const CrossEntropyJob& job) {
  const bool aligned = job.vocabulary % Pack<T>::size == 0 && reinterpret_cast<std::uintptr_t>(job.logits) % 16 == 0;
  return aligned ? job.vocabulary / Pack<T>::size : 0;
}

/// Overwrites a row's logits with scale * (softmax - onehot).
template <class T>
__device__ void write_gradient(const CrossEntropyJob& job, T* logits, std::int64_t target, float lse) {
  const float scale = target < 0 ? 0.0f : job.scale[std::int64_t(blockIdx.x) * job.scale_step];
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

/// The offset of exponents. It is finite because -inf minus -inf would be NaN if all values so far were -inf.
__device__ float finite_base(float highest) { return highest == -INFINITY ? 0.0f : highest; }

// One pass: each thread keeps its running maximum and the sum of exponentials below it. The row is still in the L2
// cache when its gradient overwrites it.
template <class T>
__global__ void __launch_bounds__(threads) cross_entropy_kernel(CrossEntropyJob job) {
  __shared__ float maxima[warps];
  __shared__ float sums[warps];
  const std::int64_t row = blockIdx.x, target = job.targets[row];
  T* logits = static_cast<T*>(job.logits) + row * job.vocabulary;
  float highest = -INFINITY, sum = 0;
  const int packs = whole_packs<T>(job);
  for (int i = threadIdx.x; i < packs; i += threads) {
    const Pack<T> p = reinterpret_cast<const Pack<T>*>(logits)[i];
    float top = highest;
#pragma unroll
    for (int k = 0; k < Pack<T>::size; ++k) top = fmaxf(top, load(p.at[k]));
    if (top > highest) sum *= __expf(highest - top);
    highest = top;
    const float base = finite_base(highest);
#pragma unroll
    for (int k = 0; k < Pack<T>::size; ++k) sum += __expf(load(p.at[k]) - base);  // NaN included: it stays one
  }
  for (int i = packs * Pack<T>::size + threadIdx.x; i < job.vocabulary; i += threads) {
    const float x = load(logits[i]);
    if (x > highest) {
      sum = sum * __expf(highest - x) + 1.0f;
      highest = x;
    } else {
      sum += __expf(x - finite_base(highest));  // NaN and -inf included: a NaN stays one
    }
  }
  float warp_highest = highest;
  for (int lane = 16; lane > 0; lane /= 2)
    warp_highest = fmaxf(warp_highest, __shfl_xor_sync(0xffffffffu, warp_highest, lane));
  if (threadIdx.x % 32 == 0) maxima[threadIdx.x / 32] = warp_highest;
  const float wanted = target < 0                ? 0.0f
                       : target < job.vocabulary ? load(logits[target])
                                                 : NAN;  // before it is overwritten
  __syncthreads();
  float all_highest = maxima[0];
  for (int w = 1; w < warps; ++w) all_highest = fmaxf(all_highest, maxima[w]);
  sum = highest == -INFINITY && sum == 0 ? 0 : sum * __expf(highest - all_highest);
  const float lse = all_highest + __logf(block_sum(sum, sums));
  if (threadIdx.x == 0) {
    job.lse[row] = lse;
    job.losses[row] = target < 0 ? 0.0f : lse - wanted;
  }
  if (job.scale) write_gradient(job, logits, target, lse);
}

template <class T>
__global__ void __launch_bounds__(threads) cross_entropy_backward_kernel(CrossEntropyJob job) {
  const std::int64_t row = blockIdx.x;
  write_gradient(job, static_cast<T*>(job.logits) + row * job.vocabulary, job.targets[row], job.lse[row]);
}

/// Blocks of draws in a row: four words each, eight blocks for 32 columns of the full width.
__host__ __device__ std::int64_t dropout_blocks(const DropoutMaskJob& job) {
  return ((job.first_column + job.columns + 31) / 32 - job.first_column / 32) * 8;
}

// A thread draws one block: four words, for columns that are eight apart. Eight threads of a row write 32
// columns.
template <class T>
__global__ void __launch_bounds__(threads) dropout_mask_kernel(DropoutMaskJob job) {
  const std::int64_t row_blocks = dropout_blocks(job), all = job.rows * row_blocks;
  for (std::int64_t i = std::int64_t(blockIdx.x) * threads + threadIdx.x; i < all;
       i += std::int64_t(gridDim.x) * threads) {
    const std::int64_t own = i / row_blocks, row = job.first_row + own;
    const std::int64_t block = job.first_column / 32 * 8 + i % row_blocks;
    const std::uint64_t stream =
        std::uint64_t(job.first_sample + row / job.sequence) << 32 | std::uint64_t(row % job.sequence);
    const PhiloxBlock drawn = philox_block(job.seed, stream, std::uint64_t(block));
    T* out = static_cast<T*>(job.mask) + own * job.columns;
#pragma unroll
    for (int w = 0; w < 4; ++w) {
      const std::int64_t column = block / 8 * 32 + w * 8 + block % 8 - job.first_column;
      if (column >= 0 && column < job.columns) out[column] = store<T>(drawn.word[w] < job.threshold ? 0.0f : job.kept);
    }
  }
}

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
    const int packs = job.inner / Pack<decltype(t)>::size;
    const dim3 blocks((packs + threads - 1) / threads, unsigned(job.rows < max_blocks_y ? job.rows : max_blocks_y));
    swiglu_kernel<decltype(t)><<<blocks, threads, 0, stream_of(stream)>>>(job);
  });
  check_launch("swiglu");
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
  const std::int64_t blocks = (job.rows * dropout_blocks(job) + threads - 1) / threads;
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
