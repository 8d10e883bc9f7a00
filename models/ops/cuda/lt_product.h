#pragma once
// LtProduct: matrix products on a GPU by cuBLASLt, which adds another matrix and a bias in the product's epilogue, with
// an algorithm that is chosen once for each problem.
#include <cublasLt.h>

#include <atomic>
#include <map>
#include <mutex>

#include "models/ops/cuda/lt_problem.h"

namespace zero::cuda {

/// Sums are fp32 ones, rounded once, with what is added. fp32 operands are multiplied as LibTorch's are (IEEE unless it
/// is told that TF32 will do).
///
/// An algorithm is chosen at a problem's first use: up to 8 that cuBLASLt suggests are timed on the device, and the
/// fastest is kept for as long as the object lives. The host waits for it once. Where it may not (a stream that captures
/// a graph, forbid_waiting) cuBLASLt's first suggestion is taken, until the problem comes again; and for good where an out
/// that is added to would need a second one of more than 64 MiB for the timing, unless the product that overwrites it has
/// been timed by then: its algorithm comes first there, and the suggestions where cuBLASLt refuses to add by it.
///
/// Once an algorithm is chosen, the problem's results repeat for as long as the object lives. Between runs and ranks they
/// do where LibTorch is asked for deterministic algorithms: nothing is timed then, and the first suggestion that sums each
/// number in one sequence is taken, which hangs on the problem, the kind of GPU and the version of cuBLASLt alone.
class LtProduct {
 public:
  LtProduct() = default;
  ~LtProduct();
  LtProduct(const LtProduct&) = delete;
  LtProduct& operator=(const LtProduct&) = delete;

  /// Queues the product on the current stream of the terms' device, which is the current one. False, and nothing is done,
  /// where it is none of cuBLASLt's (LtProblem::of) or has no algorithm there; a refusal that is no such answer is told
  /// of in the log, once. By any thread; those of one device take turns.
  bool multiply(const ProductTerms& terms);

 private:
  /// What a problem is computed by.
  struct Choice {
    explicit Choice(const LtKey& key) : descriptions(key) {}
    LtDescriptions descriptions;
    std::vector<cublasLtMatmulHeuristicResult_t> candidates;  // best first
    bool settled = false;
  };
  /// Of one device.
  struct Device {
    std::mutex lock;
    cublasLtHandle_t handle = nullptr;
    std::map<LtKey, std::unique_ptr<Choice>> choices;  // null: cuBLASLt has none
    std::map<cudaStream_t, at::Tensor> workspaces;
  };

  Device& device_of(int index);
  std::unique_ptr<Choice> suggested(const Device& device, const LtProblem& problem);
  void time(Device& device, Choice& choice, const LtProblem& problem, const at::Tensor& out);
  static void take_overwriting(const Device& device, Choice& choice, LtKey key);
  bool launch(Device& device, Choice& choice, const LtPointers& pointers);
  at::Tensor workspace(Device& device, cudaStream_t stream, std::size_t bytes);
  void tell(const std::string& refusal);

  std::mutex lock_;  // of devices_
  std::map<int, Device> devices_;
  std::atomic<bool> told_ = false;
};

}  // namespace zero::cuda
