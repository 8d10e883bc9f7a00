#pragma once
// Kernels: the time that the computations of a step take on one rank of a machine, while the other ranks of its node
// compute too. MeasuredKernels runs them here; SheetKernels derives their times from a data sheet.
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <string>
#include <vector>

namespace zero {

/// [rows, in] times the transpose of a weight [out, in].
struct ProductShape {
  std::int64_t rows = 0, in = 0, out = 0;
  at::ScalarType type = at::kBFloat16;

  double flops() const { return 2.0 * double(rows) * double(in) * double(out); }
};

enum class ProductPass : std::uint8_t { forward, input_gradient, weight_gradient };

struct AttentionWork {
  std::int64_t batch = 0, length = 0, heads = 0, kv_heads = 0, head_dim = 0, window = 0;
  at::ScalarType type = at::kBFloat16;

  /// Counts the two products of a forward pass, for the visible pairs of tokens only.
  double flops() const;
};

/// Kernels over rows of `width` elements.
enum class RowKernel : std::uint8_t { norm, norm_backward, activation, activation_backward, loss };

/// Every function returns seconds. Not thread-safe.
class Kernels {
 public:
  virtual ~Kernels() = default;
  virtual double product(const ProductShape& shape, ProductPass pass) = 0;
  virtual double attention(const AttentionWork& work, bool backward) = 0;
  virtual double rows(RowKernel kernel, std::int64_t rows, std::int64_t width, at::ScalarType type) = 0;
  /// The time to read and write `bytes` bytes of memory in total.
  virtual double stream(double bytes) = 0;
  /// One line per kind of number: the number and its source.
  virtual std::vector<std::string> sources() const = 0;
};

/// Bytes that a row kernel reads and writes, per element of the row.
double bytes_of(RowKernel kernel, at::ScalarType type);

}  // namespace zero
