// cuBLASLt's calls that the project makes. A product is queued on its stream and computed by LibTorch on the CPU, in
// fp32 and rounded once. A problem has several algorithms, with other bits each. One sums from the first term on and
// takes any alignment. The others take vectors of 16 bytes, and sum from the last term on or in parts. The problem
// alone decides which one is suggested first, and which is fastest.
//
// The emulation refuses what the library would refuse: types, sizes that do not fit, leading dimensions, alignments,
// another problem's algorithm, a workspace that is too small.
#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <cublasLt.h>

#include <cstring>

#include "tests/cuda/emulated/device.h"
#include "tests/cuda/emulated/lt_counts.h"

using namespace zero::emulated;

namespace {

constexpr int algorithms = 4;
constexpr int forward = 0, backward = 3;  // the others are numbered by their parts, less one
constexpr double product_seconds = 1e-3;  // much more than any other task takes

struct Product {
  cublasComputeType_t compute;
  cudaDataType_t scale;
  std::int32_t transpose_a = CUBLAS_OP_N, transpose_b = CUBLAS_OP_N;
  std::uint32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const void* bias = nullptr;
};

struct Matrix {
  cudaDataType_t type;
  std::int64_t rows, columns, leading;

  std::size_t element() const { return type == CUDA_R_32F ? 4 : 2; }
  std::size_t bytes() const { return std::size_t((columns - 1) * leading + rows) * element(); }
  at::ScalarType scalar() const {
    return type == CUDA_R_32F ? at::kFloat : type == CUDA_R_16F ? at::kHalf : at::kBFloat16;
  }
  /// The transpose, whose rows lie one after the other.
  at::Tensor tensor(const void* data) const {
    return at::from_blob(const_cast<void*>(data), {columns, rows}, {leading, 1}, at::TensorOptions().dtype(scalar()));
  }
  bool operator==(const Matrix&) const = default;
};

struct Preference {
  std::uint64_t workspace = 0;
  std::uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_MASK;
  std::uint32_t alignments[4] = {256, 256, 256, 256};  // of A, B, C, D
};

/// The emulation's contents of cublasLtMatmulAlgo_t.
struct Algorithm {
  std::uint64_t problem, number, workspace;
  std::uint32_t alignments[5];  // that it needs, of A, B, C, D and the bias
};
static_assert(sizeof(Algorithm) <= sizeof(cublasLtMatmulAlgo_t));

template <class Real, class Ours>
Ours& as(Real* real) {
  return *reinterpret_cast<Ours*>(real);
}
Product& product_of(cublasLtMatmulDesc_t p) { return as<cublasLtMatmulDescOpaque_t, Product>(p); }
Matrix& matrix_of(cublasLtMatrixLayout_t m) { return as<cublasLtMatrixLayoutOpaque_t, Matrix>(m); }
Preference& preference_of(cublasLtMatmulPreference_t p) { return as<cublasLtMatmulPreferenceOpaque_t, Preference>(p); }

template <class Value>
cublasStatus_t assign(Value& to, const void* from, std::size_t bytes) {
  if (bytes != sizeof to) return CUBLAS_STATUS_INVALID_VALUE;
  return std::memcpy(&to, from, bytes), CUBLAS_STATUS_SUCCESS;
}

bool is_split(int algorithm) { return algorithm != forward && algorithm != backward; }

/// The whole of a call, but for addresses.
struct Problem {
  Product product;
  Matrix a, b, c, d;
  std::int64_t m, n, k;

  Problem(const Product& p, const Matrix& a, const Matrix& b, const Matrix& c, const Matrix& d)
      : product(p), a(a), b(b), c(c), d(d), m(d.rows), n(d.columns), k(p.transpose_a ? a.rows : a.columns) {}

  bool fits() const {
    for (const Matrix& matrix : {a, b, c, d})
      if (matrix.rows <= 0 || matrix.columns <= 0 || matrix.leading < matrix.rows) return false;
    return (product.transpose_a ? a.columns : a.rows) == m && (product.transpose_b ? b.columns : b.rows) == k &&
           (product.transpose_b ? b.rows : b.columns) == n && c.rows == m && c.columns == n;
  }
  bool has_types() const {
    const bool narrow = a.type == CUDA_R_16BF || a.type == CUDA_R_16F;
    if (a.type != b.type || c.type != d.type || product.scale != CUDA_R_32F) return false;
    if (product.epilogue != CUBLASLT_EPILOGUE_DEFAULT && product.epilogue != CUBLASLT_EPILOGUE_BIAS) return false;
    if (narrow) return product.compute == CUBLAS_COMPUTE_32F && (d.type == a.type || d.type == CUDA_R_32F);
    return a.type == CUDA_R_32F && d.type == CUDA_R_32F &&
           (product.compute == CUBLAS_COMPUTE_32F || product.compute == CUBLAS_COMPUTE_32F_FAST_TF32);
  }
  std::uint64_t number() const {
    std::uint64_t hash = 1469598103934665603u;
    const auto mix = [&](std::int64_t value) { hash = (hash ^ std::uint64_t(value)) * 1099511628211u; };
    for (const Matrix& matrix : {a, b, c, d})
      for (const std::int64_t value : {std::int64_t(matrix.type), matrix.rows, matrix.columns, matrix.leading})
        mix(value);
    for (const std::int64_t value : {std::int64_t(product.compute), std::int64_t(product.transpose_a),
                                     std::int64_t(product.transpose_b), std::int64_t(product.epilogue)})
      mix(value);
    return hash;
  }
  std::uint64_t fastest() const { return (number() >> 32) % algorithms; }
  int first() const { return int((number() >> 48) % algorithms); }
  /// Parts of a sum are fp32 matrices in the workspace.
  std::uint64_t workspace(int algorithm) const {
    return is_split(algorithm) ? std::uint64_t(m * n * 4) * std::uint64_t(algorithm + 1) : 0;
  }
};

bool aligned(const void* address, std::size_t bytes) { return reinterpret_cast<std::uintptr_t>(address) % bytes == 0; }

std::uint32_t alignment_of(const void* address) {
  std::uint32_t bytes = 256;
  while (!aligned(address, bytes)) bytes /= 2;
  return bytes;
}

/// out, by rows, of operands by rows.
void multiply(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b, const at::Tensor& added,
              const at::Tensor& bias, int algorithm) {
  const at::AutoDispatchBelowADInplaceOrView below;
  at::Tensor wide_a = a.to(at::kFloat), wide_b = b.to(at::kFloat);
  if (algorithm == backward) wide_a = wide_a.flip(1), wide_b = wide_b.flip(0);
  const std::int64_t parts = is_split(algorithm) ? algorithm + 1 : 1;
  at::Tensor sum = added.defined() ? added.to(at::kFloat) : at::Tensor();
  const std::int64_t k = a.size(1), part = std::max<std::int64_t>(1, (k + parts - 1) / parts);
  for (std::int64_t begin = 0; begin < k; begin += part) {
    const std::int64_t length = std::min(part, k - begin);
    const at::Tensor left = wide_a.narrow(1, begin, length), right = wide_b.narrow(0, begin, length);
    sum = sum.defined() ? at::addmm(sum, left, right) : at::mm(left, right);
  }
  if (bias.defined()) sum = sum + bias.to(at::kFloat);
  out.copy_(sum);
}

EmulatedLtCounts counts;
bool refuses_fastest_sum = false;

}  // namespace

extern "C" {

const EmulatedLtCounts* zero_emulated_lt_counts() { return &counts; }
void zero_emulated_lt_refuse_fastest_sum(bool refuses) { refuses_fastest_sum = refuses; }

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  static int one;
  return *handle = reinterpret_cast<cublasLtHandle_t>(&one), CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t) { return CUBLAS_STATUS_SUCCESS; }
const char* cublasLtGetStatusString(cublasStatus_t status) {
  return status == CUBLAS_STATUS_NOT_SUPPORTED   ? "CUBLAS_STATUS_NOT_SUPPORTED"
         : status == CUBLAS_STATUS_INVALID_VALUE ? "CUBLAS_STATUS_INVALID_VALUE"
                                                 : "another status of cuBLASLt";
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* made, cublasComputeType_t compute, cudaDataType_t scale) {
  return *made = reinterpret_cast<cublasLtMatmulDesc_t>(new Product{compute, scale}), CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t made) {
  return delete &product_of(made), CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t made, cublasLtMatmulDescAttributes_t what,
                                              const void* value, size_t bytes) {
  Product& product = product_of(made);
  switch (what) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
      return assign(product.transpose_a, value, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB:
      return assign(product.transpose_b, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      return assign(product.epilogue, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      return assign(product.bias, value, bytes);
    default:
      not_emulated("an attribute of a product");
  }
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* made, cudaDataType type, uint64_t rows,
                                          uint64_t columns, int64_t leading) {
  auto* matrix = new Matrix{type, std::int64_t(rows), std::int64_t(columns), leading};
  return *made = reinterpret_cast<cublasLtMatrixLayout_t>(matrix), CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t made) {
  return delete &matrix_of(made), CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* made) {
  return *made = reinterpret_cast<cublasLtMatmulPreference_t>(new Preference), CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t made) {
  return delete &preference_of(made), CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t made,
                                                    cublasLtMatmulPreferenceAttributes_t what, const void* value,
                                                    size_t bytes) {
  Preference& preference = preference_of(made);
  switch (what) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
      return assign(preference.workspace, value, bytes);
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
      return assign(preference.reductions, value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
      return assign(preference.alignments[0], value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
      return assign(preference.alignments[1], value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
      return assign(preference.alignments[2], value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
      return assign(preference.alignments[3], value, bytes);
    default:
      not_emulated("an attribute of what is preferred");
  }
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t product, cublasLtMatrixLayout_t a,
                                              cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,
                                              cublasLtMatrixLayout_t d, cublasLtMatmulPreference_t preferred, int most,
                                              cublasLtMatmulHeuristicResult_t results[], int* count) {
  const Problem problem(product_of(product), matrix_of(a), matrix_of(b), matrix_of(c), matrix_of(d));
  const Preference& preference = preference_of(preferred);
  ++counts.searches;
  *count = 0;
  if (most <= 0 || !problem.fits()) return CUBLAS_STATUS_INVALID_VALUE;
  if (!problem.has_types()) return CUBLAS_STATUS_NOT_SUPPORTED;
  const Matrix matrices[] = {problem.a, problem.b, problem.c, problem.d};
  bool vectors = true;
  for (int i = 0; i < 4; ++i) {
    if (preference.alignments[i] < matrices[i].element()) return CUBLAS_STATUS_NOT_SUPPORTED;
    vectors &= preference.alignments[i] % 16 == 0 && std::size_t(matrices[i].leading) * matrices[i].element() % 16 == 0;
  }
  for (int turn = 0; turn < algorithms && *count < most; ++turn) {
    const int i = (problem.first() + turn) % algorithms;
    if (i != forward && !vectors) continue;
    if (is_split(i) && !(preference.reductions & CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE)) continue;
    if (problem.workspace(i) > preference.workspace) continue;
    Algorithm algorithm{problem.number(), std::uint64_t(i), problem.workspace(i), {}};
    for (int j = 0; j < 4; ++j) algorithm.alignments[j] = i == forward ? std::uint32_t(matrices[j].element()) : 16;
    algorithm.alignments[4] = std::min<std::uint32_t>(16, alignment_of(problem.product.bias));
    cublasLtMatmulHeuristicResult_t& result = results[(*count)++];
    result = {};
    std::memcpy(&result.algo, &algorithm, sizeof algorithm);
    result.workspaceSize = algorithm.workspace;
    result.state = CUBLAS_STATUS_SUCCESS;
  }
  return *count > 0 ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t product, const void* alpha, const void* A,
                              cublasLtMatrixLayout_t a, const void* B, cublasLtMatrixLayout_t b, const void* beta,
                              const void* C, cublasLtMatrixLayout_t c, void* D, cublasLtMatrixLayout_t d,
                              const cublasLtMatmulAlgo_t* how, void* workspace, size_t workspace_bytes,
                              cudaStream_t stream) {
  const Problem problem(product_of(product), matrix_of(a), matrix_of(b), matrix_of(c), matrix_of(d));
  if (!how) not_emulated("a product without an algorithm");
  Algorithm algorithm;
  std::memcpy(&algorithm, how, sizeof algorithm);
  const float scale = *static_cast<const float*>(alpha), added = *static_cast<const float*>(beta);
  if (scale != 1 || (added != 0 && added != 1)) not_emulated("a product with a factor");
  if (!problem.fits() || algorithm.problem != problem.number()) return CUBLAS_STATUS_INVALID_VALUE;
  if (C == D && !(problem.c == problem.d)) return CUBLAS_STATUS_INVALID_VALUE;
  const bool biased = problem.product.epilogue == CUBLASLT_EPILOGUE_BIAS;
  const void* const addresses[] = {A, B, C, D, biased ? problem.product.bias : nullptr};
  for (int i = 0; i < 5; ++i)
    if (!aligned(addresses[i], algorithm.alignments[i])) return CUBLAS_STATUS_INVALID_VALUE;
  if (biased && !problem.product.bias) return CUBLAS_STATUS_INVALID_VALUE;
  if (workspace_bytes < algorithm.workspace || (workspace_bytes > 0 && !aligned(workspace, 256)))
    return CUBLAS_STATUS_INVALID_VALUE;
  if (refuses_fastest_sum && added != 0 && algorithm.number == problem.fastest()) return CUBLAS_STATUS_NOT_SUPPORTED;

  MemoryMap& memory = MemoryMap::get();
  memory.check_device(A, problem.a.bytes(), "a product's A");
  memory.check_device(B, problem.b.bytes(), "a product's B");
  memory.check_device(D, problem.d.bytes(), "a product's D");
  if (added != 0) memory.check_device(C, problem.c.bytes(), "a product's C");
  if (biased)
    memory.check_device(problem.product.bias, std::size_t(problem.m) * problem.d.element(), "a product's bias");
  if (algorithm.workspace > 0) memory.check_device(workspace, algorithm.workspace, "a product's workspace");

  ++counts.products;
  if (algorithm.number != problem.fastest()) ++counts.slow;
  if (is_split(int(algorithm.number))) ++counts.split;
  Scheduler::get().enqueue(
      stream, {[=] {
                 // By rows all is transposed, the product too: D^T = op(B)^T op(A)^T.
                 const at::Tensor left = problem.b.tensor(B), right = problem.a.tensor(A);
                 // The parts would lie there: what else is in the workspace goes wrong.
                 if (algorithm.workspace > 0) std::memset(workspace, 0xff, algorithm.workspace);
                 multiply(problem.d.tensor(D), problem.product.transpose_b ? left.t() : left,
                          problem.product.transpose_a ? right.t() : right,
                          added != 0 ? problem.c.tensor(C) : at::Tensor(),
                          biased ? Matrix{problem.d.type, problem.m, 1, problem.m}.tensor(problem.product.bias).view(-1)
                                 : at::Tensor(),
                          int(algorithm.number));
                 Scheduler::get().take(algorithm.number == problem.fastest() ? product_seconds : 2 * product_seconds);
               },
               {}});
  return CUBLAS_STATUS_SUCCESS;
}

}  // extern "C"
