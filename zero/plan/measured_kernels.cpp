#include "zero/plan/measured_kernels.h"

#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <ctime>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/log.h"
#include "models/ops/attention.h"
#include "models/ops/cross_entropy.h"
#include "models/ops/matrix_product.h"
#include "models/ops/rms_norm.h"
#include "models/ops/swiglu.h"

namespace zero {
namespace {

using Clock = std::chrono::steady_clock;

// Larger shapes are scaled from these, so that operands of all ranks fit and a number takes less than a second.
constexpr std::int64_t most_rows = 2048, most_width = 8192, most_row_width = 32768, most_length = 4096;
constexpr double time_of_a_number = 0.08;      // seconds of calls behind one number
constexpr std::int64_t cold_bytes = 64 << 20;  // weights of a step do not stay in the caches

/// Seconds on a clock. A call on one thread is timed by its thread's processor time, which other programs on the
/// machine do not prolong.
double now_of(const RankThreads& here) {
  if (here.threads > 1) return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return double(time.tv_sec) + 1e-9 * double(time.tv_nsec);
}

const char* name_of(at::ScalarType type) {
  return type == at::kBFloat16 ? "bf16" : type == at::kHalf ? "fp16" : type == at::kFloat ? "fp32" : "fp64";
}

/// fp32 products have several precisions (models/nn/matmul_setting.h).
std::string name_of_factors(at::ScalarType type) {
  if (type != at::kFloat) return name_of(type);
  const auto precision = at::globalContext().float32Precision(at::Float32Backend::MKLDNN, at::Float32Op::MATMUL);
  return precision == at::Float32Precision::TF32   ? "fp32 (high)"
         : precision == at::Float32Precision::BF16 ? "fp32 (bf16 allowed)"
                                                   : "fp32";
}

const char* name_of(ProductPass pass) {
  return pass == ProductPass::forward ? "forward" : pass == ProductPass::input_gradient ? "input" : "weight";
}

const char* name_of(RowKernel kernel) {
  switch (kernel) {
    case RowKernel::norm:
      return "norm";
    case RowKernel::norm_backward:
      return "norm backward";
    case RowKernel::activation:
      return "activation";
    case RowKernel::activation_backward:
      return "activation backward";
    case RowKernel::loss:
      return "loss";
  }
  return "";
}

at::Tensor numbers(std::initializer_list<std::int64_t> shape, at::ScalarType type) {
  return at::randn(shape, at::kFloat).mul_(0.1).to(type);
}

std::function<void()> product_call(const ProductShape& shape, ProductPass pass) {
  const at::Tensor z = numbers({shape.rows, shape.in}, shape.type), dy = numbers({shape.rows, shape.out}, shape.type);
  const std::int64_t bytes = shape.in * shape.out * std::int64_t(c10::elementSize(shape.type));
  auto weights = std::make_shared<std::vector<at::Tensor>>();
  for (std::int64_t held = 0; held < cold_bytes && weights->size() < 16; held += bytes)
    weights->push_back(numbers({shape.out, shape.in}, shape.type));
  auto turn = std::make_shared<std::size_t>(0);
  return [=] {
    const at::Tensor& weight = (*weights)[(*turn)++ % weights->size()];
    if (pass == ProductPass::forward)
      matrix_product(z, weight.t());
    else if (pass == ProductPass::input_gradient)
      matrix_product(dy, weight);
    else
      matrix_product(dy.t(), z);
  };
}

std::function<void()> attention_call(const AttentionWork& work, bool backward) {
  const AttentionShape shape{work.heads, work.kv_heads, work.head_dim, work.window};
  const at::Tensor qkv = numbers({work.batch, work.length, shape.qkv_width()}, work.type),
                   dy = numbers({work.batch, work.length, work.heads * work.head_dim}, work.type);
  auto rotary = std::make_shared<Rotary>(work.head_dim, 10000.0, std::nullopt);
  if (!backward)
    return [=] {
      const at::NoGradGuard no_grad;
      attention(qkv.clone(), shape, *rotary, {});
    };
  return [=] {
    const at::Tensor input = qkv.clone().set_requires_grad(true);
    torch::autograd::grad({attention(input, shape, *rotary, {})}, {input}, {dy});
  };
}

std::function<void()> row_call(RowKernel kernel, std::int64_t rows, std::int64_t width, at::ScalarType type) {
  const at::Tensor x = numbers({rows, width}, type);
  if (kernel == RowKernel::loss) {
    const at::Tensor targets = at::randint(width, {rows}, at::kLong);
    return [=] {
      at::Tensor logits = x;
      cross_entropy_gradient_(logits, targets, at::ones({}, at::kFloat));
    };
  }
  if (kernel == RowKernel::norm || kernel == RowKernel::norm_backward) {
    const at::Tensor weight = at::ones({width}, type), rstd = rms_norm(x, weight, 1e-5).rstd;
    if (kernel == RowKernel::norm) return [=] { rms_norm(x, weight, 1e-5); };
    return [=] { rms_norm_backward(x, x, weight, rstd, true, x); };
  }
  const at::Tensor pairs = numbers({rows, 2 * width}, type);
  if (kernel == RowKernel::activation) return [=] { swiglu(pairs); };
  return [=] { swiglu_backward(x, pairs); };
}

}  // namespace

double seconds_together(const RankThreads& here, const std::function<std::function<void()>()>& make) {
  std::vector<double> all(std::size_t(here.ranks), 0.0);
  std::barrier ready(here.ranks);
  std::mutex failing;
  std::exception_ptr failed;
  int calls = 0;
  const auto measure = [&](int rank) {
    std::function<void()> call;
    try {
      at::set_num_threads(here.threads);
      c10::AutogradState::get_tls_state().set_multithreading_enabled(false);
      call = make();
      call();
      const double first = now_of(here);
      call();
      if (rank == 0) calls = int(std::clamp(time_of_a_number / std::max(1e-7, now_of(here) - first), 3.0, 200.0));
    } catch (...) {
      const std::lock_guard lock(failing);
      failed = std::current_exception();
    }
    ready.arrive_and_wait();
    if (failed) return;
    std::vector<double> took;
    for (int i = 0; i < calls; ++i) {
      const double begin = now_of(here);
      call();
      took.push_back(now_of(here) - begin);
    }
    std::nth_element(took.begin(), took.begin() + int(took.size() / 2), took.end());
    all[std::size_t(rank)] = took[took.size() / 2];
  };
  std::vector<std::jthread> others;
  for (int rank = 0; rank < here.ranks; ++rank) others.emplace_back(measure, rank);
  others.clear();
  if (failed) std::rethrow_exception(failed);
  double sum = 0;
  for (const double seconds : all) sum += seconds;
  return sum / double(all.size());
}

double MeasuredKernels::product(const ProductShape& shape, ProductPass pass) {
  ProductShape timed = shape;
  timed.rows = std::min(shape.rows, most_rows);
  timed.in = std::min(shape.in, most_width);
  timed.out = std::min(shape.out, most_width);
  const std::string name =
      text("product ", name_of_factors(shape.type), " ", timed.rows, "x", timed.in, "x", timed.out, " ", name_of(pass));
  const double seconds = timings_.get(
      name, [here = here_, timed, pass] { return seconds_together(here, [&] { return product_call(timed, pass); }); },
      [&] { return timed.flops() / product_rate(50e9); });
  if (timings_.find(name) > 0) products_[name] = timed.flops();
  return seconds * shape.flops() / timed.flops();
}

double MeasuredKernels::product_rate(double assumed) const {
  double flops = 0, seconds = 0;
  for (const auto& [name, of_product] : products_) {
    flops += of_product;
    seconds += timings_.find(name);
  }
  return flops > 0 ? flops / seconds : assumed;
}

double MeasuredKernels::attention(const AttentionWork& work, bool backward) {
  AttentionWork timed = work;
  timed.batch = 1;
  timed.length = std::min(work.length, most_length);
  timed.heads = std::min<std::int64_t>(work.heads, 4 * std::max<std::int64_t>(1, work.heads / work.kv_heads));
  timed.kv_heads = std::max<std::int64_t>(1, timed.heads * work.kv_heads / work.heads);
  const auto seconds_of = [&](bool both) {
    const std::string name = text("attention ", name_of(work.type), " ", timed.length, " ", timed.heads, "/",
                                  timed.kv_heads, "x", timed.head_dim, " window ", timed.window, both ? " both" : "");
    return timings_.get(
        name,
        [here = here_, timed, both] { return seconds_together(here, [&] { return attention_call(timed, both); }); },
        [&] { return (both ? 3.5 : 1) * timed.flops() * 3 / product_rate(60e9); });
  };
  const double scale = work.flops() / timed.flops();
  const double forward = seconds_of(false);
  return scale * (backward ? std::max(0.0, seconds_of(true) - forward) : forward);
}

double MeasuredKernels::rows(RowKernel kernel, std::int64_t rows, std::int64_t width, at::ScalarType type) {
  const std::int64_t timed = std::min(rows, most_rows / 2), timed_width = std::min(width, most_row_width);
  const std::string name = text("rows ", name_of(kernel), " ", name_of(type), " ", timed, "x", timed_width);
  const double seconds = timings_.get(
      name,
      [=, here = here_] { return seconds_together(here, [&] { return row_call(kernel, timed, timed_width, type); }); },
      [&] { return stream(double(timed) * double(timed_width) * bytes_of(kernel, type)); });
  return seconds * (double(rows) / double(timed)) * (double(width) / double(timed_width));
}

double MeasuredKernels::stream(double bytes) {
  constexpr std::int64_t elements = 16 << 20;  // 64 MiB in each of two vectors: beyond the caches
  const double seconds = timings_.get(
      "stream",
      [here = here_] {
        return seconds_together(here, []() -> std::function<void()> {
          const at::Tensor a = at::zeros({elements}, at::kFloat), b = at::ones({elements}, at::kFloat);
          return [=] { a.add_(b, 0.5); };
        });
      },
      [] { return 3.0 * 4 * double(elements) / 5e9; });
  return bytes * seconds / (3.0 * 4 * double(elements));
}

std::vector<std::string> MeasuredKernels::sources() const {
  std::vector<std::string> lines;
  const std::string ranks = text(here_.ranks, here_.ranks == 1 ? " rank" : " ranks at once", ", ", here_.threads,
                                 here_.threads == 1 ? " thread" : " threads", " each");
  if (!products_.empty())
    lines.push_back(text("products: ", int(product_rate(0) / 1e9), " GFLOP/s on average over the shapes of this model",
                         " (measured here, ", ranks, ")"));
  if (const double stream = timings_.find("stream"); stream > 0)
    lines.push_back(
        text("memory: ", int(3.0 * 4 * (16 << 20) / stream / 1e7) / 100.0, " GB/s for each rank (measured here)"));
  const std::string place = timings_.path().empty() ? "not kept" : "kept in " + timings_.path();
  if (timings_.measured() > 0)
    lines.push_back(text("attention and row kernels: each shape (measured here); ", timings_.measured(),
                         timings_.measured() == 1 ? " new number, " : " new numbers, ", place));
  else if (timings_.knows_any())
    lines.push_back("attention and row kernels: each shape (measured here by earlier calls, " + place + ")");
  if (timings_.guesses() > 0)
    lines.push_back(timings_.measures()
                        ? text("the time to measure was spent: ", timings_.guesses(),
                               " numbers are scaled from other shapes (assumed); call again to measure them")
                        : text("nothing was measured (--no-measure): ", timings_.guesses(),
                               timings_.knows_any()
                                   ? " numbers are scaled from other shapes (assumed), so times may be far off"
                                   : " numbers are assumed, so times may be far off"));
  return lines;
}

}  // namespace zero
