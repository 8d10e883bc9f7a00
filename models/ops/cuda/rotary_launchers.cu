#include "models/ops/cuda/rotary_launchers.h"

#include "models/ops/cuda/row_vectors.cuh"

namespace zero::cuda {
namespace {

constexpr int tokens_of_block = 8;

// A block processes a few tokens. A thread processes N dimensions of a head's first half, and the dimensions that
// rotate with them.

/// Calls visit(token, head, dimension) for this thread's part of the first `heads` heads.
template <int N, class Visit>
__device__ void for_each_piece(const Turning& turning, int heads, Visit visit) {
  const int pieces = turning.head_dim / 2 / N, all = heads * pieces;
  const std::int64_t first = std::int64_t(blockIdx.x) * tokens_of_block;
  const int tokens = turning.tokens - first < tokens_of_block ? int(turning.tokens - first) : tokens_of_block;
  for (int i = threadIdx.x; i < tokens * all; i += threads) {
    const int token = i / all, piece = i - token * all, head = piece / pieces;
    visit(first + token, head, (piece - head * pieces) * N);
  }
}

/// Uses 32 bits, in which division is cheap.
__device__ std::uint32_t sequence_of(std::int64_t token, const Turning& turning) {
  return std::uint32_t(token) / std::uint32_t(turning.seq);
}
__device__ std::uint32_t in_sequence(std::int64_t token, const Turning& turning) {
  return std::uint32_t(token) % std::uint32_t(turning.seq);
}

template <class T, int N>
struct Halves {
  Vector<T, N> low, high;
};

template <class T, int N>
__device__ Halves<T, N> turned(const Halves<T, N>& in, const Turning& turning, std::int64_t token, int dimension,
                               float direction) {
  const std::int64_t position = turning.positions ? turning.positions[token] : in_sequence(token, turning);
  const std::int64_t row = position * (turning.head_dim / 2) + dimension;
  Halves<T, N> out;
#pragma unroll
  for (int k = 0; k < N; ++k) {
    const float a = load(in.low.at[k]), b = load(in.high.at[k]), c = turning.cos[row + k],
                s = direction * turning.sin[row + k];
    out.low.at[k] = store<T>(a * c - b * s);
    out.high.at[k] = store<T>(b * c + a * s);
  }
  return out;
}

template <class T, int N>
__device__ Halves<T, N> read_halves(const T* head, int half) {
  return {*reinterpret_cast<const Vector<T, N>*>(head), *reinterpret_cast<const Vector<T, N>*>(head + half)};
}

template <class T, int N>
__device__ void write_halves(T* head, int half, const Halves<T, N>& halves) {
  *reinterpret_cast<Vector<T, N>*>(head) = halves.low;
  *reinterpret_cast<Vector<T, N>*>(head + half) = halves.high;
}

template <class T, int N>
__global__ void __launch_bounds__(threads) rotate_kernel(T* qkv, Turning turning) {
  for_each_piece<N>(turning, turning.heads, [&](std::int64_t token, int head, int dimension) {
    T* at = qkv + token * turning.width + head * turning.head_dim + dimension;
    const int half = turning.head_dim / 2;
    write_halves<T, N>(at, half, turned(read_halves<T, N>(at, half), turning, token, dimension, 1.0f));
  });
}

template <class T, int N>
__global__ void __launch_bounds__(threads) pack_heads_kernel(PackHeadsJob job) {
  const Turning& turning = job.turning;
  const int half = turning.head_dim / 2;
  for_each_piece<N>(turning, turning.width / turning.head_dim, [&](std::int64_t token, int head, int dimension) {
    const bool of_q = head < job.q.heads, of_v = head >= turning.heads;
    const HeadsGradient& from = of_q ? job.q : of_v ? job.v : job.k;
    const int own = of_q ? head : of_v ? head - turning.heads : head - job.q.heads;
    const T* at = static_cast<const T*>(from.at) + sequence_of(token, turning) * from.batch +
                  in_sequence(token, turning) * from.token + own * from.head + dimension;
    const Halves<T, N> in = read_halves<T, N>(at, half);
    T* to = static_cast<T*>(job.dqkv) + token * turning.width + head * turning.head_dim + dimension;
    write_halves<T, N>(to, half, of_v ? in : turned(in, turning, token, dimension, -1.0f));
  });
}

bool at_vectors(const void* pointer, int bytes) { return reinterpret_cast<std::uintptr_t>(pointer) % bytes == 0; }

/// True if N elements can be read at once from the start of every piece.
template <class T, int N>
bool takes(const Turning& turning) {
  return turning.head_dim % (2 * N) == 0 && turning.width % N == 0;
}
template <class T, int N>
bool takes(const HeadsGradient& heads) {
  return at_vectors(heads.at, N * sizeof(T)) && heads.batch % N == 0 && heads.token % N == 0 && heads.head % N == 0;
}

unsigned blocks_of(const Turning& turning) {
  return unsigned((turning.tokens + tokens_of_block - 1) / tokens_of_block);
}

}  // namespace

void rotate(void* qkv, const Turning& turning, Stream stream) {
  if (turning.tokens == 0) return;
  by_type(stream.type, [&](auto t) {
    using T = decltype(t);
    constexpr int wide = Pack<T>::size;
    T* at = static_cast<T*>(qkv);
    if (takes<T, wide>(turning) && at_vectors(qkv, 16))
      rotate_kernel<T, wide><<<blocks_of(turning), threads, 0, stream_of(stream)>>>(at, turning);
    else
      rotate_kernel<T, 1><<<blocks_of(turning), threads, 0, stream_of(stream)>>>(at, turning);
  });
  check_launch("rotate");
}

void pack_heads(const PackHeadsJob& job, Stream stream) {
  if (job.turning.tokens == 0) return;
  by_type(stream.type, [&](auto t) {
    using T = decltype(t);
    constexpr int wide = Pack<T>::size;
    const bool vectors = takes<T, wide>(job.turning) && takes<T, wide>(job.q) && takes<T, wide>(job.k) &&
                         takes<T, wide>(job.v) && at_vectors(job.dqkv, 16);
    if (vectors)
      pack_heads_kernel<T, wide><<<blocks_of(job.turning), threads, 0, stream_of(stream)>>>(job);
    else
      pack_heads_kernel<T, 1><<<blocks_of(job.turning), threads, 0, stream_of(stream)>>>(job);
  });
  check_launch("pack_heads");
}

}  // namespace zero::cuda
