#pragma once
// LtProblem: one matrix product in cuBLASLt's terms, whose matrices lie column by column: out^T = b^T a^T.
#include <ATen/core/Tensor.h>
#include <cublasLt.h>

#include <array>
#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace zero::cuda {

/// out = a b + c + bias. a [m, k] and b [k, n] of one type, out and c [m, n] of one type, bias [n] of that type, all on
/// one device. `c` may be out itself or another matrix, which does not overlap it; c and bias may be undefined.
struct ProductTerms {
  at::Tensor out, a, b, c, bias;
};

/// Everything that an algorithm is chosen by.
struct LtKey {
  std::array<std::int64_t, 3> sizes{};                  // m, n, k of out^T
  std::array<std::int64_t, 4> leading{};                // of the operands, c and out
  std::array<std::int64_t, 5> alignments{};             // bytes, at most 16: of the operands, c, out and bias
  std::array<int, 2> types{};                           // cudaDataType: of the operands, of c and out
  std::array<bool, 2> transposed{};                     // operands
  bool biased = false, adds = false, in_place = false;  // adds: c counts; in_place: it is out
  bool tf32 = false;                                    // fp32 operands may be rounded
  bool deterministic = false;
  auto operator<=>(const LtKey&) const = default;
};

/// What a call hands over beside the key.
struct LtPointers {
  const void *a = nullptr, *b = nullptr, *c = nullptr, *bias = nullptr;
  void* out = nullptr;
};

struct LtProblem {
  LtKey key;
  LtPointers pointers;
  std::vector<at::Tensor> copies;  // of operands that cuBLASLt does not read where they lie: alive until the call

  /// None where the product is not one of cuBLASLt's: types other than fp32, bf16 and fp16 (out may be fp32 in any case),
  /// nothing to multiply, an out that is stored in neither direction, a bias of columns. What LibTorch's mm would copy
  /// is copied: operands and c of other strides than a row's or a column's.
  static std::optional<LtProblem> of(const ProductTerms& terms, bool tf32, bool deterministic);
};

/// The library's descriptions of a problem, owned.
class LtDescriptions {
 public:
  explicit LtDescriptions(const LtKey& key);

  /// Algorithms for the problem that take at most `workspace` bytes, the library's favourite first; at most `most`. A
  /// deterministic problem gets such as sum each number in one sequence (no split-K); of the others none sums in the
  /// type of a 16-bit result. `bias` is asked for its alignment alone.
  std::vector<cublasLtMatmulHeuristicResult_t> candidates(cublasLtHandle_t handle, const void* bias,
                                                          std::size_t workspace, int most);
  /// Queues the product. The status is the library's.
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

/// Throws Error with what was asked unless the library says success.
void check_lt(cublasStatus_t status, const char* what);

}  // namespace zero::cuda
