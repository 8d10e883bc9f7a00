#pragma once
// PackedMatrix: a weight whose rows are held in ggml types, for generation on a CPU. A tensor stands for it wherever a
// weight is expected. matrix_product() and embed() read the rows of that tensor; other operations on its values throw.
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "base/numbers/ggml_type.h"

namespace zero {

class PackedMatrix {
 public:
  /// Consecutive rows of one type. `bytes` [ggml_bytes] is contiguous on the CPU.
  struct Rows {
    GgmlType type;
    std::int64_t count = 0;
    at::Tensor bytes;
  };

  /// True if rows of this length can be packed in this type. F32 is not a packed type.
  static bool can_hold(GgmlType type, std::int64_t columns);
  /// The bytes in which rows are held. Rows of blocks are filled up to a multiple of 16.
  static std::int64_t bytes(GgmlType type, std::int64_t rows, std::int64_t columns);

  /// Returns a tensor [all rows, columns] of `type`, fp32 or bf16, without memory of its own. It and its views keep the
  /// rows alive.
  static at::Tensor tensor(std::vector<Rows> rows, std::int64_t columns, at::ScalarType type);

  /// The matrix that a tensor or a view of it stands for; null for all other tensors.
  static const PackedMatrix* of(const at::Tensor& tensor);

  /// out = a W^T, or with `add` out += a W^T, for this matrix W and a [n, columns] in the type of `out`. Up to eight
  /// rows multiply the blocks' codes as integers (kernels/code_panels.h), or 16-bit values in fp32. The sum is rounded
  /// once. More rows call matrix_product_into() with parts of W, decoded to the type of `out`.
  void multiply_into(const at::Tensor& out, const at::Tensor& a, bool add) const;

  /// Returns the decoded rows `ids` [n] int64, [n, columns].
  at::Tensor rows(const at::Tensor& ids, at::ScalarType type) const;

 private:
  PackedMatrix(std::vector<Rows> rows, std::int64_t columns) : rows_(std::move(rows)), columns_(columns) {}
  static void free(void* matrix);
  void multiply_few(const at::Tensor& out, const at::Tensor& a, bool add) const;
  void multiply_many(const Rows& rows, const at::Tensor& out, const at::Tensor& a, bool add) const;

  std::vector<Rows> rows_;
  std::int64_t columns_;
};

}  // namespace zero
