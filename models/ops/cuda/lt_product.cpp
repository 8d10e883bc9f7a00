#include "models/ops/cuda/lt_product.h"

#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <ATen/cuda/CUDAEvent.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGraphsC10Utils.h>
#include <c10/cuda/CUDAStream.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "models/ops/matrix_product.h"

namespace zero::cuda {

namespace {

constexpr std::int64_t most_scratch = std::int64_t{64} << 20;  // bytes
constexpr int most_candidates = 8, timed_runs = 3;
// A later suggestion must win by this factor: less is noise.
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

LtProduct::Device& LtProduct::device_of(int index) {
  const std::lock_guard guard(lock_);
  return devices_[index];
}

bool LtProduct::multiply(const ProductTerms& terms) {
  const bool deterministic = at::globalContext().deterministicAlgorithms();
  const std::optional<LtProblem> problem = LtProblem::of(terms, tf32_will_do(), deterministic);
  if (!problem) return false;
  Device& device = device_of(terms.out.get_device());
  const std::lock_guard guard(device.lock);  // its products wait only for their own stream
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

/// Runs each candidate once as a warm-up and then several times between two events, and uses its minimum, because other
/// work on the device, such as collectives, disturbs single runs. An accumulating product writes its trial results
/// elsewhere. Otherwise each trial overwrites `out`, and so does the product itself.
void LtProduct::time(Device& device, Choice& choice, const LtProblem& problem, const at::Tensor& out) {
  choice.settled = true;
  LtPointers pointers = problem.pointers;
  at::Tensor scratch;
  if (problem.key.in_place) {
    const std::int64_t bytes = problem.key.leading[3] * problem.key.sizes[1] * std::int64_t(out.element_size());
    if (bytes > most_scratch) return take_overwriting(device, choice, problem.key);
    try {
      scratch = at::empty({bytes}, out.options().dtype(at::kByte));
    } catch (const c10::OutOfMemoryError&) {
      return take_overwriting(device, choice, problem.key);
    }
    pointers.out = scratch.data_ptr();
  }
  struct Run {
    std::size_t candidate;
    at::cuda::CUDAEvent begin{cudaEventDefault}, end{cudaEventDefault};
  };
  std::vector<Run> runs;
  std::vector<bool> refused(choice.candidates.size(), false);
  for (int round = -1; round < timed_runs; ++round)
    for (std::size_t i = 0; i < choice.candidates.size(); ++i) {
      if (refused[i]) continue;
      const auto& candidate = choice.candidates[i];
      const at::Tensor room = workspace(device, current_stream(), candidate.workspaceSize);
      Run run{i};
      run.begin.record();
      refused[i] =
          choice.descriptions.launch(device.handle, candidate, pointers, room.defined() ? room.data_ptr() : nullptr,
                                     current_stream()) != CUBLAS_STATUS_SUCCESS;
      run.end.record();
      if (round >= 0 && !refused[i]) runs.push_back(std::move(run));
    }
  std::vector<float> least(choice.candidates.size(), std::numeric_limits<float>::infinity());
  for (Run& run : runs) {
    run.end.synchronize();
    least[run.candidate] = std::min(least[run.candidate], run.begin.elapsed_time(run.end));
  }
  std::size_t best = choice.candidates.size();
  for (std::size_t i = 0; i < least.size(); ++i)
    if (!refused[i] && (best == least.size() || least[i] < margin * least[best])) best = i;
  if (best < choice.candidates.size()) choice.candidates = {choice.candidates[best]};
}

/// Reuses the timed choice of the overwriting product with the same `out`, as in the first micro-batch. It precedes the
/// suggestions, which remain in case it cannot accumulate.
void LtProduct::take_overwriting(const Device& device, Choice& choice, LtKey key) {
  key.adds = key.in_place = false;
  const auto found = device.choices.find(key);
  if (found == device.choices.end() || !found->second || !found->second->settled) return;
  choice.candidates.insert(choice.candidates.begin(), found->second->candidates.front());
}

/// Launches the first candidate that is not rejected.
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

/// One workspace per stream, whose products run one after the other. A graph being captured has its own, since it may
/// be replayed while the stream does other work.
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
  if (told_.exchange(true)) return;
  log_warning(refusal + "; LibTorch's products take its place there");
}

}  // namespace zero::cuda
