#pragma once
// LtProduct: matrix products on a GPU by cuBLASLt. It adds another matrix and a bias in the product's epilogue, and
// chooses an algorithm once for each problem.
#include <cublasLt.h>

#include <atomic>
#include <map>
#include <mutex>

#include "models/ops/cuda/lt_problem.h"

namespace zero::cuda {

/// Sums are in fp32, rounded once, including the added terms. fp32 operands are multiplied as in LibTorch (IEEE unless
/// TF32 is allowed).
///
/// The first use of a problem chooses its algorithm. Up to 8 of cuBLASLt's suggestions are timed on the device, and the
/// fastest is kept while the object lives. The host waits once for the timing. If the host must not wait (a stream that
/// captures a graph, forbid_waiting), cuBLASLt's first suggestion is used. The problem is then timed at a later use.
///
/// An accumulating product is not timed if that would need a second `out` of more than 64 MiB. Such a product first
/// tries the algorithm of the product that overwrites the same `out`, if that product was timed. It then tries the
/// suggestions.
///
/// A chosen algorithm gives repeatable results while the object lives. If LibTorch's deterministic algorithms are on,
/// results repeat between runs and ranks, because nothing is timed. The first suggestion that sums each element in one
/// sequence is used. It depends only on the problem, the kind of GPU and the version of cuBLASLt.
class LtProduct {
 public:
  LtProduct() = default;
  ~LtProduct();
  LtProduct(const LtProduct&) = delete;
  LtProduct& operator=(const LtProduct&) = delete;

  /// Queues the product on the current stream. The terms must be on the current device. If cuBLASLt cannot compute the
  /// product (LtProblem::of) or has no algorithm, does nothing and returns false. Any other failure is logged once.
  /// Thread-safe; threads that use the same device take turns.
  bool multiply(const ProductTerms& terms);

 private:
  /// The algorithms of a problem.
  struct Choice {
    explicit Choice(const LtKey& key) : descriptions(key) {}
    LtDescriptions descriptions;
    std::vector<cublasLtMatmulHeuristicResult_t> candidates;  // best first
    bool settled = false;
  };
  /// State of one device.
  struct Device {
    std::mutex lock;
    cublasLtHandle_t handle = nullptr;
    std::map<LtKey, std::unique_ptr<Choice>> choices;  // null: cuBLASLt has no algorithm
    std::map<cudaStream_t, at::Tensor> workspaces;
  };

  Device& device_of(int index);
  std::unique_ptr<Choice> suggested(const Device& device, const LtProblem& problem);
  void time(Device& device, Choice& choice, const LtProblem& problem, const at::Tensor& out);
  static void take_overwriting(const Device& device, Choice& choice, LtKey key);
  bool launch(Device& device, Choice& choice, const LtPointers& pointers);
  at::Tensor workspace(Device& device, cudaStream_t stream, std::size_t bytes);
  void tell(const std::string& refusal);

  std::mutex lock_;  // guards devices_
  std::map<int, Device> devices_;
  std::atomic<bool> told_ = false;
};

}  // namespace zero::cuda
