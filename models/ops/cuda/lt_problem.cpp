#include "models/ops/cuda/lt_problem.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <string>

#include "base/error.h"

namespace zero::cuda {

namespace {

/// A matrix stored by rows or columns, with this many elements from one to the next.
struct Stored {
  bool by_rows;
  std::int64_t leading;
};

std::optional<Stored> stored(const at::Tensor& x) {
  const std::int64_t rows = x.size(0), columns = x.size(1);
  if ((columns == 1 || x.stride(1) == 1) && (rows == 1 || x.stride(0) >= columns))
    return Stored{true, rows == 1 ? columns : x.stride(0)};
  if ((rows == 1 || x.stride(0) == 1) && (columns == 1 || x.stride(1) >= rows))
    return Stored{false, columns == 1 ? rows : x.stride(1)};
  return {};
}

std::optional<int> cuda_type(at::ScalarType type) {
  if (type == at::kFloat) return CUDA_R_32F;
  if (type == at::kBFloat16) return CUDA_R_16BF;
  if (type == at::kHalf) return CUDA_R_16F;
  return {};
}

// Vectors are 16 bytes, so any larger alignment is equal, and one choice serves all views of a buffer.
std::int64_t alignment(const void* address) {
  std::int64_t bytes = 16;
  while (reinterpret_cast<std::uintptr_t>(address) % static_cast<std::uintptr_t>(bytes) != 0) bytes /= 2;
  return bytes;
}

template <class Set, class Object, class Attribute, class Value>
void set(Set setter, Object& object, Attribute attribute, const Value& value) {
  check_lt(setter(object.get(), attribute, &value, sizeof value), "describe a product");
}

}  // namespace

void check_lt(cublasStatus_t status, const char* what) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw Error(std::string("cuBLASLt could not ") + what + ": " + cublasLtGetStatusString(status));
}

std::optional<LtProblem> LtProblem::of(const ProductTerms& terms, bool tf32, bool deterministic) {
  const at::Tensor &out = terms.out, &a = terms.a, &b = terms.b;
  const std::int64_t m = a.size(0), k = a.size(1), n = b.size(1);
  const std::optional<int> type = cuda_type(a.scalar_type()), result = cuda_type(out.scalar_type());
  if (!type || !result || b.scalar_type() != a.scalar_type() || m == 0 || k == 0 || n == 0) return {};
  if (*result != *type && *result != CUDA_R_32F) return {};
  for (const at::Tensor& added : {terms.c, terms.bias})
    if (added.defined() && added.scalar_type() != out.scalar_type()) return {};
  const std::optional<Stored> to = stored(out);
  if (!to) return {};
  if (!to->by_rows) {
    if (terms.bias.defined()) return {};
    return of({out.t(), b.t(), a.t(), terms.c.defined() ? terms.c.t() : at::Tensor(), {}}, tf32, deterministic);
  }

  LtProblem problem;
  problem.copies = {a, b};  // as they are, or in rows
  const auto in_rows = [](at::Tensor& x) { return *stored(stored(x) ? x : x = x.contiguous()); };
  // A row-major matrix is the column-major transpose, so only column-major inputs need a transposition.
  const Stored left = in_rows(problem.copies[1]), right = in_rows(problem.copies[0]);
  LtKey& key = problem.key;
  LtPointers& pointers = problem.pointers;
  pointers = {problem.copies[1].const_data_ptr(), problem.copies[0].const_data_ptr(), out.data_ptr(), nullptr,
              out.data_ptr()};
  std::int64_t added_leading = to->leading;
  if (terms.c.defined()) {
    at::Tensor c = terms.c;
    key.adds = true;
    key.in_place = c.const_data_ptr() == out.const_data_ptr();
    if (!key.in_place) {
      if (const auto how = stored(c); !how || !how->by_rows) c = c.contiguous();
      added_leading = stored(c)->leading;
      pointers.c = c.const_data_ptr();
      problem.copies.push_back(c);
    }
  }
  if (terms.bias.defined()) {
    key.biased = true;
    problem.copies.push_back(terms.bias.contiguous());
    pointers.bias = problem.copies.back().const_data_ptr();
  }
  key.sizes = {n, m, k};
  key.leading = {left.leading, right.leading, added_leading, to->leading};
  key.alignments = {alignment(pointers.a), alignment(pointers.b), alignment(pointers.c), alignment(pointers.out),
                    alignment(pointers.bias)};
  key.types = {*type, *result};
  key.transposed = {!left.by_rows, !right.by_rows};
  key.tf32 = tf32 && *type == CUDA_R_32F;
  key.deterministic = deterministic;
  return problem;
}

LtDescriptions::Layout LtDescriptions::layout(int type, std::int64_t rows, std::int64_t columns, std::int64_t leading) {
  cublasLtMatrixLayout_t made = nullptr;
  check_lt(cublasLtMatrixLayoutCreate(&made, static_cast<cudaDataType>(type), static_cast<std::uint64_t>(rows),
                                      static_cast<std::uint64_t>(columns), leading),
           "describe a matrix");
  return Layout(made, {cublasLtMatrixLayoutDestroy});
}

LtDescriptions::LtDescriptions(const LtKey& key) : key_(key) {
  cublasLtMatmulDesc_t made = nullptr;
  check_lt(cublasLtMatmulDescCreate(&made, key.tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUDA_R_32F),
           "describe a product");
  product_ = {made, {cublasLtMatmulDescDestroy}};
  const auto operation = [](bool transposed) { return std::int32_t(transposed ? CUBLAS_OP_T : CUBLAS_OP_N); };
  set(cublasLtMatmulDescSetAttribute, product_, CUBLASLT_MATMUL_DESC_TRANSA, operation(key.transposed[0]));
  set(cublasLtMatmulDescSetAttribute, product_, CUBLASLT_MATMUL_DESC_TRANSB, operation(key.transposed[1]));
  if (key.biased)
    set(cublasLtMatmulDescSetAttribute, product_, CUBLASLT_MATMUL_DESC_EPILOGUE, std::uint32_t(CUBLASLT_EPILOGUE_BIAS));
  const auto [m, n, k] = key.sizes;
  const auto operand = [&](int i, std::int64_t rows, std::int64_t columns) {
    const std::size_t at = std::size_t(i);
    return key.transposed[at] ? layout(key.types[0], columns, rows, key.leading[at])
                              : layout(key.types[0], rows, columns, key.leading[at]);
  };
  a_ = operand(0, m, k);
  b_ = operand(1, k, n);
  c_ = layout(key.types[1], m, n, key.leading[2]);
  out_ = layout(key.types[1], m, n, key.leading[3]);
}

std::vector<cublasLtMatmulHeuristicResult_t> LtDescriptions::candidates(cublasLtHandle_t handle, const void* bias,
                                                                        std::size_t workspace, int most) {
  if (key_.biased) set(cublasLtMatmulDescSetAttribute, product_, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
  cublasLtMatmulPreference_t made = nullptr;
  check_lt(cublasLtMatmulPreferenceCreate(&made), "describe what is preferred");
  const Owned<cublasLtMatmulPreferenceOpaque_t> preference(made, {cublasLtMatmulPreferenceDestroy});
  const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t what, const auto& value) {
    set(cublasLtMatmulPreferenceSetAttribute, preference, what, value);
  };
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, std::uint64_t(workspace));
  prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
         std::uint32_t(key_.deterministic ? CUBLASLT_REDUCTION_SCHEME_NONE : CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, std::uint32_t(key_.alignments[0]));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, std::uint32_t(key_.alignments[1]));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, std::uint32_t(key_.alignments[2]));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, std::uint32_t(key_.alignments[3]));

  std::vector<cublasLtMatmulHeuristicResult_t> found(static_cast<std::size_t>(most));
  int count = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
      handle, product_.get(), a_.get(), b_.get(), c_.get(), out_.get(), preference.get(), most, found.data(), &count);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED) return {};
  check_lt(status, "look for algorithms");
  found.resize(static_cast<std::size_t>(count));
  std::erase_if(found, [&](const auto& result) {
    return result.state != CUBLAS_STATUS_SUCCESS || result.workspaceSize > workspace;
  });
  return found;
}

cublasStatus_t LtDescriptions::launch(cublasLtHandle_t handle, const cublasLtMatmulHeuristicResult_t& how,
                                      const LtPointers& pointers, void* workspace, cudaStream_t stream) {
  if (key_.biased) set(cublasLtMatmulDescSetAttribute, product_, CUBLASLT_MATMUL_DESC_BIAS_POINTER, pointers.bias);
  const float one = 1, added = key_.adds ? 1 : 0;
  return cublasLtMatmul(handle, product_.get(), &one, pointers.a, a_.get(), pointers.b, b_.get(), &added, pointers.c,
                        c_.get(), pointers.out, out_.get(), &how.algo, workspace, how.workspaceSize, stream);
}

}  // namespace zero::cuda
