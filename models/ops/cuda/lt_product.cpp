#include "models/ops/cuda/lt_product.h"

#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <ATen/cuda/CUDAEvent.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGraphsC10Utils.h>
#include <c10/cuda/CUDAStream.h>

#include <limits>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "models/ops/matrix_product.h"

namespace zero::cuda {

namespace {

constexpr std::int64_t most_scratch = std::int64_t{64} << 20;  // bytes
constexpr int most_candidates = 8, timed_runs = 3;
// A later suggestion must win by so much: less is the clock's noise.
constexpr float margin = 0.98f;

bool captures() { return c10::cuda::currentStreamCaptureStatusMayInitCtx() != c10::cuda::CaptureStatus::None; }

bool may_wait() {
  return c10::cuda::warning_state().get_sync_debug_mode() == c10::cuda::SyncDebugMode::L_DISABLED && !captures();
}

bool tf32_will_do() {
  return at::globalContext().float32Precision(at::Float32Backend::CUDA, at::Float32Op::MATMUL) ==
         at::Float32Precision::TF32;
}

cudaStream_t current_stream() { return c10::cuda::getCurrentCUDAStream().stream(); }

}  // namespace

LtProduct::~LtProduct() {
  for (auto& [index, device] : devices_)
    if (device.handle) cublasLtDestroy(device.handle);
}

bool LtProduct::multiply(const ProductTerms& terms) {
  const bool deterministic = at::globalContext().deterministicAlgorithms();
  const std::optional<LtProblem> problem = LtProblem::of(terms, tf32_will_do(), deterministic);
  if (!problem) return false;
  const std::lock_guard guard(lock_);
  Device& device = devices_[terms.out.get_device()];
  if (!device.handle) check_lt(cublasLtCreate(&device.handle), "be started");
  const auto [place, is_new] = device.choices.try_emplace(problem->key);
  std::unique_ptr<Choice>& choice = place->second;
  if (is_new) choice = suggested(device, *problem);
  if (choice && !choice->settled && may_wait()) time(device, *choice, *problem, terms.out);
  if (choice && !launch(device, *choice, problem->pointers)) choice.reset();
  return choice != nullptr;
}

std::unique_ptr<LtProduct::Choice> LtProduct::suggested(const Device& device, const LtProblem& problem) {
  try {
    auto choice = std::make_unique<Choice>(problem.key);
    choice->candidates = choice->descriptions.candidates(device.handle, problem.pointers.bias, device_product_workspace,
                                                         problem.key.deterministic ? 1 : most_candidates);
    choice->settled = choice->candidates.size() <= 1;
    return choice->candidates.empty() ? nullptr : std::move(choice);
  } catch (const Error& error) {
    tell(error.what());
    return nullptr;
  }
}

/// Each candidate in turn, once for nothing and then some times between two events. What is added to stays: the results
/// go elsewhere. Another out is written by each of them, and then by the product itself.
void LtProduct::time(Device& device, Choice& choice, const LtProblem& problem, const at::Tensor& out) {
  choice.settled = true;
  LtPointers pointers = problem.pointers;
  at::Tensor scratch;
  if (problem.key.in_place) {
    const std::int64_t bytes = problem.key.leading[3] * problem.key.sizes[1] * std::int64_t(out.element_size());
    if (bytes > most_scratch) return;
    try {
      scratch = at::empty({bytes}, out.options().dtype(at::kByte));
    } catch (const c10::OutOfMemoryError&) {
      return;
    }
    pointers.out = scratch.data_ptr();
  }
  std::vector<at::cuda::CUDAEvent> begins, ends;
  for (const auto& candidate : choice.candidates) {
    begins.emplace_back(cudaEventDefault);
    ends.emplace_back(cudaEventDefault);
    const at::Tensor room = workspace(device, current_stream(), candidate.workspaceSize);
    cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
    for (int run = -1; run < timed_runs && status == CUBLAS_STATUS_SUCCESS; ++run) {
      if (run == 0) begins.back().record();
      status = choice.descriptions.launch(device.handle, candidate, pointers,
                                          room.defined() ? room.data_ptr() : nullptr, current_stream());
    }
    if (status == CUBLAS_STATUS_SUCCESS) ends.back().record();
  }
  std::size_t best = choice.candidates.size();
  float least = std::numeric_limits<float>::infinity();
  for (std::size_t i = 0; i < choice.candidates.size(); ++i) {
    if (!ends[i].isCreated()) continue;  // refused
    ends[i].synchronize();
    if (const float ms = begins[i].elapsed_time(ends[i]); best == choice.candidates.size() || ms < margin * least) {
      best = i;
      least = ms;
    }
  }
  if (best < choice.candidates.size()) choice.candidates = {choice.candidates[best]};
}

/// By the first candidate that is not refused.
bool LtProduct::launch(Device& device, Choice& choice, const LtPointers& pointers) {
  cublasStatus_t status = CUBLAS_STATUS_NOT_SUPPORTED;
  while (!choice.candidates.empty()) {
    const cublasLtMatmulHeuristicResult_t& first = choice.candidates.front();
    const at::Tensor room = workspace(device, current_stream(), first.workspaceSize);
    status = choice.descriptions.launch(device.handle, first, pointers, room.defined() ? room.data_ptr() : nullptr,
                                        current_stream());
    if (status == CUBLAS_STATUS_SUCCESS) return true;
    choice.candidates.erase(choice.candidates.begin());
  }
  tell(text("cuBLASLt could not multiply: ", cublasLtGetStatusString(status)));
  return false;
}

/// Held for each stream, whose products come one after the other. A graph that is being captured has its own memory, and
/// may be replayed beside what the stream does later.
at::Tensor LtProduct::workspace(Device& device, cudaStream_t stream, std::size_t bytes) {
  if (bytes == 0) return {};
  const auto fresh = [](std::int64_t size) {
    return at::empty({size}, at::TensorOptions().dtype(at::kByte).device(at::kCUDA));
  };
  if (captures()) return fresh(std::int64_t(bytes));
  at::Tensor& held = device.workspaces[stream];
  if (!held.defined()) held = fresh(device_product_workspace);
  return held;
}

void LtProduct::tell(const std::string& refusal) {
  if (std::exchange(told_, true)) return;
  log_warning(refusal + "; LibTorch's products take its place there");
}

}  // namespace zero::cuda
