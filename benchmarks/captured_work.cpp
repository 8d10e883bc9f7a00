#include "benchmarks/captured_work.h"

#include <ATen/cuda/CUDAGraph.h>
#include <cuda_runtime_api.h>

#include <string>

#include "base/error.h"

namespace zero {

struct CapturedWork::Impl {
  at::cuda::CUDAGraph graph;
};

CapturedWork::CapturedWork(const std::function<void()>& work) : impl_(std::make_unique<Impl>()) {
  // Restricts only this thread: other threads may query events meanwhile.
  impl_->graph.capture_begin({0, 0}, cudaStreamCaptureModeThreadLocal);
  std::string why;
  try {
    work();
  } catch (const std::exception& error) {
    why = error.what();
  }
  try {
    impl_->graph.capture_end();
  } catch (const std::exception& error) {
    if (why.empty()) why = error.what();
    cudaGetLastError();  // said; the next launch must not find it
  }
  if (!why.empty()) throw Error(why.substr(0, why.find('\n')));
}

CapturedWork::~CapturedWork() = default;

void CapturedWork::replay() { impl_->graph.replay(); }

}  // namespace zero
