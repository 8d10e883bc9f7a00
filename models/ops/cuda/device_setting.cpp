#include "models/ops/cuda/device_setting.h"

#include <ATen/Context.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAFunctions.h>

#include <cstdlib>
#include <sstream>

namespace zero {

std::string prepare_device(int device, at::ScalarType compute, bool deterministic) {
  at::Context& context = at::globalContext();
  if (deterministic) {
    setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", 0);
    context.setDeterministicAlgorithms(true, false);
    context.setDeterministicCuDNN(true);
  }
  context.setFloat32Precision(at::Float32Backend::CUDA, at::Float32Op::MATMUL, at::Float32Precision::IEEE);
  context.setAllowBF16ReductionCuBLAS(false);
  context.setAllowFP16ReductionCuBLAS(false);

  const cudaDeviceProp* properties = at::cuda::getDeviceProperties(static_cast<c10::DeviceIndex>(device));
  const bool cudnn = properties->major >= 9 && !deterministic && compute != at::kFloat;
  context.setSDPUseMath(false);
  context.setSDPUseCuDNN(cudnn);
  context.setSDPUseFlash(true);
  context.setSDPUseMemEfficient(true);
  using Backend = at::SDPBackend;
  context.setSDPPriorityOrder({static_cast<int64_t>(Backend::cudnn_attention),
                               static_cast<int64_t>(Backend::flash_attention),
                               static_cast<int64_t>(Backend::efficient_attention), static_cast<int64_t>(Backend::math),
                               static_cast<int64_t>(Backend::overrideable)});
  std::ostringstream line;
  line << properties->name << " (compute capability " << properties->major << '.' << properties->minor << ", "
       << properties->multiProcessorCount << " multiprocessors, " << (properties->totalGlobalMem >> 30)
       << " GiB); attention by "
       << (compute == at::kFloat ? "the memory-efficient kernel"
           : cudnn               ? "cuDNN, else flash"
                                 : "flash")
       << (deterministic ? "; deterministic" : "");
  return line.str();
}

void forbid_waiting(bool forbidden) {
  c10::cuda::warning_state().set_sync_debug_mode(forbidden ? c10::cuda::SyncDebugMode::L_ERROR
                                                           : c10::cuda::SyncDebugMode::L_DISABLED);
}

}  // namespace zero
