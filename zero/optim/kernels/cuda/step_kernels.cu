#include "zero/optim/kernels/cuda/step_kernels.h"

#include <stdexcept>
#include <string>

#include "base/numbers/device_numbers.cuh"

namespace zero::cuda {
namespace {

constexpr int threads = 256;

// The order of StepNumbers in zero/optim/kernels/device_step.h.
enum { sum_of_squares, norm, factor, steps, finite, bias1, bias2_root };

/// A product that is rounded before it meets a sum, as the CPU's loops round it.
__device__ inline float rounded_product(float a, float b) { return __fmul_rn(a, b); }
__device__ inline double rounded_product(double a, double b) { return __dmul_rn(a, b); }

__device__ double block_sum(double value, double* shared) {
  shared[threadIdx.x] = value;
  __syncthreads();
  for (int half = threads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) shared[threadIdx.x] += shared[threadIdx.x + half];
    __syncthreads();
  }
  return shared[0];
}

template <class T>
__global__ void __launch_bounds__(threads) squares_kernel(const T* flat, std::int64_t n, double* scratch) {
  __shared__ double shared[threads];
  double sum = 0;
  const std::int64_t first = std::int64_t(blockIdx.x) * threads + threadIdx.x,
                     stride = std::int64_t(gridDim.x) * threads;
  const std::int64_t packs = reinterpret_cast<std::uintptr_t>(flat) % 16 == 0 ? n / Pack<T>::size : 0;
  for (std::int64_t i = first; i < packs; i += stride) {
    const Pack<T> pack = reinterpret_cast<const Pack<T>*>(flat)[i];
#pragma unroll
    for (int k = 0; k < Pack<T>::size; ++k) {
      const double x = load<double>(pack.at[k]);
      sum += x * x;
    }
  }
  for (std::int64_t i = packs * Pack<T>::size + first; i < n; i += stride) {
    const double x = load<double>(flat[i]);
    sum += x * x;
  }
  sum = block_sum(sum, shared);
  if (threadIdx.x == 0) scratch[blockIdx.x] = sum;
}

__global__ void __launch_bounds__(threads) collect_kernel(const double* scratch, int blocks, double* total) {
  __shared__ double shared[threads];
  double sum = 0;
  for (int i = threadIdx.x; i < blocks; i += threads) sum += scratch[i];
  sum = block_sum(sum, shared);
  if (threadIdx.x == 0) *total += sum;
}

// torch.nn.utils.clip_grad_norm_ on gradients that carry the loss scale.
__global__ void judge_kernel(JudgeJob job) {
  double* at = job.numbers;
  at[norm] = sqrt(at[sum_of_squares]) / job.loss_scale;
  at[finite] = isfinite(at[norm]) ? 1 : 0;
  at[steps] += at[finite];
  at[factor] = (job.max_norm > 0 ? fmin(1.0, job.max_norm / (at[norm] + 1e-6)) : 1.0) / job.loss_scale;
  at[bias1] = 1 - pow(job.beta1, at[steps]);
  at[bias2_root] = sqrt(1 - pow(job.beta2, at[steps]));
}

// Operation by operation what zero/optim/rules/adamw.cpp does: from the same numbers a step has the bits of one on the
// CPU.
template <class S>
class AdamWStep {
 public:
  __device__ explicit AdamWStep(const AdamWJob& job) {
    scale_ = S(job.numbers[factor]), keep_ = S(1 - job.lr * job.weight_decay), b1_ = S(1 - job.beta1),
    beta2_ = S(job.beta2), b2_ = S(1 - job.beta2), step_ = S(job.lr / job.numbers[bias1]),
    root_ = S(1 / job.numbers[bias2_root]), eps_ = S(job.eps);
  }

  __device__ void operator()(S gradient, S& master, S& m, S& v) const {
    const S g = rounded_product(gradient, scale_);
    m = fma(g - m, b1_, m);
    v = fma(v, beta2_, rounded_product(rounded_product(g, g), b2_));
    master = rounded_product(master, keep_) - rounded_product(m, step_) / fma(sqrt(v), root_, eps_);
  }

 private:
  S scale_, keep_, b1_, beta2_, b2_, step_, root_, eps_;
};

/// Elements [N i, N i + N) of a job.
template <int N, class S, class G, class W>
__device__ void adamw_vector(const AdamWJob& job, const AdamWStep<S>& step, std::int64_t i) {
  auto &master = static_cast<Vector<S, N>*>(job.master)[i], &m_at = static_cast<Vector<S, N>*>(job.m)[i],
       &v_at = static_cast<Vector<S, N>*>(job.v)[i];
  const Vector<G, N> gradient = static_cast<const Vector<G, N>*>(job.gradient)[i];
  Vector<S, N> p = master, m = m_at, v = v_at;
  Vector<W, N> weights;
#pragma unroll
  for (int k = 0; k < N; ++k) {
    step(load<S>(gradient.at[k]), p.at[k], m.at[k], v.at[k]);
    weights.at[k] = store<W>(p.at[k]);
  }
  master = p, m_at = m, v_at = v;
  if (job.weights) static_cast<Vector<W, N>*>(job.weights)[i] = weights;
}

template <int N, class S, class G, class W>
__global__ void __launch_bounds__(threads) adamw_kernel(AdamWJob job) {
  if (job.numbers[finite] == 0) return;
  const AdamWStep<S> step(job);
  const std::int64_t first = std::int64_t(blockIdx.x) * threads + threadIdx.x,
                     stride = std::int64_t(gridDim.x) * threads, vectors = job.n / N;
  for (std::int64_t i = first; i < vectors; i += stride) adamw_vector<N, S, G, W>(job, step, i);
  for (std::int64_t i = vectors * N + first; i < job.n; i += stride) adamw_vector<1, S, G, W>(job, step, i);
}

bool begins_at(const void* pointer, std::size_t bytes) {
  return reinterpret_cast<std::uintptr_t>(pointer) % bytes == 0;
}

// The numbers of a step are found once a thread: each takes several vectors.
template <int N, class S, class G, class W>
void launch_by(const AdamWJob& job, cudaStream_t stream) {
  constexpr std::int64_t elements = threads * N * 4;
  const std::int64_t blocks = (job.n + elements - 1) / elements;
  adamw_kernel<N, S, G, W><<<unsigned(blocks < 8192 ? blocks : 8192), threads, 0, stream>>>(job);
}

template <class S, class G, class W>
void launch(const AdamWJob& job, cudaStream_t stream) {
  constexpr int wide = Pack<S>::size;
  const bool vectors = begins_at(job.master, 16) && begins_at(job.m, 16) && begins_at(job.v, 16) &&
                       begins_at(job.gradient, wide * sizeof(G)) && begins_at(job.weights, wide * sizeof(W));
  if (vectors)
    launch_by<wide, S, G, W>(job, stream);
  else
    launch_by<1, S, G, W>(job, stream);
}

template <class G>
void launch_with_gradient(const AdamWJob& job, cudaStream_t stream) {
  switch (job.weight_type) {
    case Number::bf16:
      launch<float, G, __nv_bfloat16>(job, stream);
      break;
    case Number::fp16:
      launch<float, G, __half>(job, stream);
      break;
    default:
      launch<float, G, float>(job, stream);
      break;
  }
}

void check_launch(const char* what) {
  const cudaError_t error = cudaGetLastError();
  if (error != cudaSuccess) throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(error));
}

}  // namespace

void add_sum_of_squares(const void* flat, Number type, std::int64_t n, double* scratch, int blocks, double* sum,
                        void* stream) {
  if (n == 0) return;
  const auto on = static_cast<cudaStream_t>(stream);
  switch (type) {
    case Number::fp32:
      squares_kernel<<<blocks, threads, 0, on>>>(static_cast<const float*>(flat), n, scratch);
      break;
    case Number::bf16:
      squares_kernel<<<blocks, threads, 0, on>>>(static_cast<const __nv_bfloat16*>(flat), n, scratch);
      break;
    case Number::fp16:
      squares_kernel<<<blocks, threads, 0, on>>>(static_cast<const __half*>(flat), n, scratch);
      break;
    case Number::fp64:
      squares_kernel<<<blocks, threads, 0, on>>>(static_cast<const double*>(flat), n, scratch);
      break;
    default:
      throw std::runtime_error("squares are summed of floating types");
  }
  collect_kernel<<<1, threads, 0, on>>>(scratch, blocks, sum);
  check_launch("sum_of_squares");
}

void judge_step(const JudgeJob& job, void* stream) {
  judge_kernel<<<1, 1, 0, static_cast<cudaStream_t>(stream)>>>(job);
  check_launch("judge_step");
}

void adamw(const AdamWJob& job, void* stream) {
  if (job.n == 0) return;
  const auto on = static_cast<cudaStream_t>(stream);
  if (job.state == Number::fp64) {
    launch<double, double, double>(job, on);
  } else {
    switch (job.gradient_type) {
      case Number::bf16:
        launch_with_gradient<__nv_bfloat16>(job, on);
        break;
      case Number::fp16:
        launch_with_gradient<__half>(job, on);
        break;
      default:
        launch_with_gradient<float>(job, on);
        break;
    }
  }
  check_launch("adamw");
}

}  // namespace zero::cuda
