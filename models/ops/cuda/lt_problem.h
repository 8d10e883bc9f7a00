#pragma once
// LtProblem: one matrix product in cuBLASLt's terms, with column-major matrices: out^T = b^T a^T.
#include <ATen/core/Tensor.h>
#include <cublasLt.h>

#include <array>
#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace zero::cuda {

/// out = a b + c + bias. a [m, k] and b [k, n] have one type. out [m, n], c [m, n] and bias [n] have one type. All are
/// on one device. `c` may be `out` itself, or a matrix that does not overlap it. `c` and `bias` may be undefined.
struct ProductTerms {
  at::Tensor out, a, b, c, bias;
};

/// Everything on which the choice of an algorithm depends.
struct LtKey {
  std::array<std::int64_t, 3> sizes{};                  // m, n, k of out^T
  std::array<std::int64_t, 4> leading{};                // of the operands, c and out
  std::array<std::int64_t, 5> alignments{};             // bytes, at most 16: of the operands, c, out and bias
  std::array<int, 2> types{};                           // cudaDataType: of the operands, of c and out
  std::array<bool, 2> transposed{};                     // operands
  bool biased = false, adds = false, in_place = false;  // adds: there is a c; in_place: c is out
  bool tf32 = false;                                    // fp32 operands may be rounded to TF32
  bool deterministic = false;
  auto operator<=>(const LtKey&) const = default;
};

/// The other arguments of a call.
struct LtPointers {
  const void *a = nullptr, *b = nullptr, *c = nullptr, *bias = nullptr;
  void* out = nullptr;
};

struct LtProblem {
  LtKey key;
  LtPointers pointers;
  std::vector<at::Tensor> copies;  // of operands that cuBLASLt cannot read in place; must live until the call

  /// Returns nothing if cuBLASLt cannot compute the product. This is so for types other than fp32, bf16 and fp16 (`out`
  /// may always be fp32), and for empty operands. It is also so if `out` is neither row-major nor column-major, or if
  /// there is a bias and `out` is column-major. Copies what LibTorch's mm would copy: operands and `c` that are neither
  /// row-major nor column-major.
  static std::optional<LtProblem> of(const ProductTerms& terms, bool tf32, bool deterministic);
};

/// The library's descriptors of a problem, owned.
class LtDescriptions {
 public:
  explicit LtDescriptions(const LtKey& key);

  /// Returns up to `most` algorithms that need at most `workspace` bytes, the library's first choice first. For a
  /// deterministic problem they sum each element in one sequence (no split-K). For other problems, none accumulates in
  /// a 16-bit type. `bias` is used only for its alignment.
  std::vector<cublasLtMatmulHeuristicResult_t> candidates(cublasLtHandle_t handle, const void* bias,
                                                          std::size_t workspace, int most);
  /// Queues the product. Returns the library's status.
  cublasStatus_t launch(cublasLtHandle_t handle, const cublasLtMatmulHeuristicResult_t& how, const LtPointers& pointers,
                        void* workspace, cudaStream_t stream);

 private:
  template <class T>
  struct Destroy {
    cublasStatus_t (*how)(T*);
    void operator()(T* object) const { how(object); }
  };
  template <class T>
  using Owned = std::unique_ptr<T, Destroy<T>>;
  using Layout = Owned<cublasLtMatrixLayoutOpaque_t>;

  static Layout layout(int type, std::int64_t rows, std::int64_t columns, std::int64_t leading);

  LtKey key_;
  Owned<cublasLtMatmulDescOpaque_t> product_;
  Layout a_, b_, c_, out_;
};

/// Throws Error with `what` unless the library reports success.
void check_lt(cublasStatus_t status, const char* what);

}  // namespace zero::cuda
