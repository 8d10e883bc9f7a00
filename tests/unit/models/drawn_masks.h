#pragma once
// Records the dropout masks that a pass draws by operations.
#include <ATen/ATen.h>
#include <ATen/record_function.h>

#include <string>
#include <utility>
#include <vector>

namespace zero::test {

/// The results of this thread's zero::dropout_mask operations, in order.
class DrawnMasks {
 public:
  DrawnMasks() : handle_(at::addThreadLocalCallback(at::RecordFunctionCallback(nullptr, note).needsOutputs(true))) {
    masks().clear();
  }
  ~DrawnMasks() { at::removeCallback(handle_); }
  DrawnMasks(const DrawnMasks&) = delete;
  DrawnMasks& operator=(const DrawnMasks&) = delete;
  std::vector<at::Tensor> take() { return std::exchange(masks(), {}); }

 private:
  static std::vector<at::Tensor>& masks() {
    thread_local std::vector<at::Tensor> all;
    return all;
  }
  static void note(const at::RecordFunction& function, at::ObserverContext*) {
    if (std::string(function.name()) != "zero::dropout_mask") return;
    masks().push_back(function.outputs().at(0).toTensor().clone());
  }
  at::CallbackHandle handle_;
};

/// The share of common numbers in which two masks agree; -1 if their sizes differ.
inline double agreement(const at::Tensor& a, const at::Tensor& b) {
  return a.sizes() == b.sizes() ? a.eq(b).to(at::kDouble).mean().item<double>() : -1;
}

}  // namespace zero::test
