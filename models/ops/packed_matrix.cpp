#include "models/ops/packed_matrix.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/StorageImpl.h>

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "base/numbers/decode_blocks.h"
#include "base/numbers/number_types.h"
#include "models/ops/backends.h"
#include "models/ops/huge_pages.h"
#include "models/ops/kernels/code_panels.h"
#include "models/ops/row_dispatch.h"

namespace zero {
namespace {

constexpr std::int64_t tile_values = 1 << 20;  // decoded at a time for many rows; in fp32, 4 MiB

/// Rows of blocks as panels.
at::Tensor in_panels(const PackedMatrix::Rows& rows, std::int64_t columns) {
  const std::int64_t row_bytes = ggml_bytes(rows.type, columns), panels = kernels::panels_of(rows.count);
  const at::Tensor out = empty_in_huge_pages({PackedMatrix::bytes(rows.type, rows.count, columns)}, at::kByte);
  const auto* from = rows.bytes.const_data_ptr<std::uint8_t>();
  auto* to = out.mutable_data_ptr<std::uint8_t>();
  by_rows(out, panels, kernels::panel_rows * columns, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t first = begin * kernels::panel_rows; first < end * kernels::panel_rows;
         first += kernels::panel_rows)
      kernels::to_panel(rows.type, from + first * row_bytes,
                        std::min<std::int64_t>(rows.count - first, kernels::panel_rows), columns,
                        to + first * row_bytes);
  });
  return out;
}

/// Decodes rows [first, first + count) to `values`, rows of `columns` numbers.
void decode(const PackedMatrix::Rows& rows, std::int64_t columns, std::int64_t first, std::int64_t count,
            at::ScalarType type, void* values) {
  const std::int64_t row_bytes = ggml_bytes(rows.type, columns);
  const auto* from = rows.bytes.const_data_ptr<std::uint8_t>();
  if (!kernels::has_panels(rows.type))
    return decode_blocks(rows.type, from + first * row_bytes, count * columns, number_of(type), values);
  std::vector<std::uint8_t> blocks(row_bytes);
  for (std::int64_t row = first; row < first + count; ++row) {
    const std::int64_t in_panel = row % kernels::panel_rows;
    kernels::from_panel(rows.type, from + (row - in_panel) * row_bytes, in_panel, columns, blocks.data());
    decode_blocks(rows.type, blocks.data(), columns, number_of(type),
                  static_cast<std::uint8_t*>(values) + (row - first) * columns * c10::elementSize(type));
  }
}

template <class W, class Y>
void multiply_halves(const PackedMatrix::Rows& rows, const at::Tensor& out, const at::Tensor& x, bool add) {
  few_rows_into<W, Y>(out, x, reinterpret_cast<const W*>(read_of<std::uint8_t>(rows.bytes)), x.size(1), add);
}

/// Rows of x as integers, made once for parts of a matrix that have the same type.
class Integers {
 public:
  explicit Integers(const at::Tensor& x) : x_(x) {}
  const kernels::FixedPoint* of(GgmlType type) {
    if (type_ != type) {
      blocks_.resize(x_.numel() / kernels::FixedPoint::values);
      kernels::to_fixed_point(type, read_of<float>(x_), x_.size(0), x_.size(1), blocks_.data());
      type_ = type;
    }
    return blocks_.data();
  }

 private:
  at::Tensor x_;
  std::optional<GgmlType> type_;
  std::vector<kernels::FixedPoint> blocks_;
};

void multiply_panels(const PackedMatrix::Rows& rows, const at::Tensor& out, const at::Tensor& x, Integers& integers,
                     bool add) {
  const kernels::PanelProduct product{rows.type,
                                      read_of<std::uint8_t>(rows.bytes),
                                      integers.of(rows.type),
                                      out.data_ptr(),
                                      number_of(out.scalar_type()),
                                      x.size(0),
                                      rows.count,
                                      x.size(1),
                                      out.stride(0),
                                      add};
  by_rows(out, kernels::panels_of(rows.count), kernels::panel_rows * x.size(1),
          [&](std::int64_t begin, std::int64_t end) { kernels::panel_product(product, begin, end); });
}

// The message is for code that does not ask PackedMatrix::of(). LibTorch before 2.13 has no way to give it.
template <class Storage>
void refuse_raw_pointers(Storage& storage) {
  if constexpr (requires { storage.clear_data_ptr_access_error_msg_(); })
    storage.release_data_and_set_meta_custom_data_ptr_error_msg_(
        "this weight is held in the types of its file (models/ops/packed_matrix.h), and has no values to point to");
}

}  // namespace

bool PackedMatrix::can_hold(GgmlType type, std::int64_t columns) {
  return type != GgmlType::f32 && columns > 0 && columns % decode_multiple == 0 && columns % ggml_block(type) == 0;
}

std::int64_t PackedMatrix::bytes(GgmlType type, std::int64_t rows, std::int64_t columns) {
  return kernels::has_panels(type) ? kernels::panel_bytes(type, rows, columns) : ggml_bytes(type, rows * columns);
}

at::Tensor PackedMatrix::tensor(std::vector<Rows> rows, std::int64_t columns, at::ScalarType type) {
  ZERO_CHECK(type == at::kFloat || type == at::kBFloat16, "packed matrices stand for fp32 or bf16");
  std::int64_t count = 0;
  for (Rows& each : rows) {
    ZERO_CHECK(can_hold(each.type, columns) && each.bytes.is_cpu() && each.bytes.is_contiguous() &&
                   each.bytes.numel() == ggml_bytes(each.type, each.count * columns),
               "the rows of a packed matrix are whole blocks");
    count += each.count;
    if (kernels::has_panels(each.type)) each.bytes = in_panels(each, columns);
  }
  at::Tensor tensor = at::empty({0}, at::TensorOptions().dtype(type));
  tensor.unsafeGetTensorImpl()->set_sizes_contiguous({count, columns});
  c10::StorageImpl* storage = tensor.storage().unsafeGetStorageImpl();
  storage->set_data_ptr_noswap(c10::DataPtr(nullptr, new PackedMatrix(std::move(rows), columns), &free, at::kCPU));
  storage->set_nbytes(static_cast<std::size_t>(count * columns) * tensor.element_size());  // as views require
  refuse_raw_pointers(*storage);
  return tensor;
}

void PackedMatrix::free(void* matrix) { delete static_cast<PackedMatrix*>(matrix); }

const PackedMatrix* PackedMatrix::of(const at::Tensor& tensor) {
  if (!tensor.has_storage()) return nullptr;
  return tensor.storage().unsafeGetStorageImpl()->_mutable_data_ptr_no_checks().cast_context<PackedMatrix>(&free);
}

void PackedMatrix::multiply_into(const at::Tensor& out, const at::Tensor& a, bool add) const {
  ZERO_CHECK(a.size(1) == columns_ && out.scalar_type() == a.scalar_type(),
             "a packed matrix is multiplied as it stands, transposed, in one type");
  if (a.size(0) == 0) return;
  if (a.size(0) <= kernels::most_few_rows && out.stride(1) == 1) return multiply_few(out, a, add);
  std::int64_t first = 0;
  for (const Rows& rows : rows_) {
    multiply_many(rows, out.narrow(1, first, rows.count), a, add);
    first += rows.count;
  }
}

void PackedMatrix::multiply_few(const at::Tensor& out, const at::Tensor& a, bool add) const {
  const at::Tensor x = a.to(at::kFloat).contiguous();
  Integers integers(x);
  std::int64_t first = 0;
  for (const Rows& rows : rows_) {
    const at::Tensor part = out.narrow(1, first, rows.count);
    if (kernels::has_panels(rows.type))
      multiply_panels(rows, part, x, integers, add);
    else
      with_kernel_type(out.scalar_type(), [&]<class Y>(Y) {
        if (rows.type == GgmlType::bf16)
          multiply_halves<Bf16, Y>(rows, part, x, add);
        else
          multiply_halves<Fp16, Y>(rows, part, x, add);
      });
    first += rows.count;
  }
}

void PackedMatrix::multiply_many(const Rows& rows, const at::Tensor& out, const at::Tensor& a, bool add) const {
  const std::int64_t most = std::min(rows.count, std::max<std::int64_t>(tile_values / columns_, 1));
  const at::Tensor tile = at::empty({most, columns_}, a.options());
  const auto row_bytes = static_cast<std::int64_t>(columns_ * a.element_size());
  for (std::int64_t first = 0; first < rows.count; first += most) {
    const std::int64_t count = std::min(most, rows.count - first);
    auto* to = static_cast<std::uint8_t*>(tile.data_ptr());
    by_rows(out, count, columns_, [&](std::int64_t begin, std::int64_t end) {
      decode(rows, columns_, first + begin, end - begin, a.scalar_type(), to + begin * row_bytes);
    });
    cpu::matrix_product_into(out.narrow(1, first, count), a, tile.narrow(0, 0, count).t(), add);
  }
}

at::Tensor PackedMatrix::rows(const at::Tensor& ids, at::ScalarType type) const {
  const at::Tensor places = ids.contiguous(), out = at::empty({ids.numel(), columns_}, at::TensorOptions().dtype(type));
  const auto row_bytes = static_cast<std::int64_t>(columns_ * out.element_size());
  auto* to = static_cast<std::uint8_t*>(out.data_ptr());
  for (std::int64_t i = 0; i < places.numel(); ++i) {
    std::int64_t place = places.const_data_ptr<std::int64_t>()[i];
    const auto holder = std::find_if(rows_.begin(), rows_.end(), [&](const Rows& rows) {
      if (place < rows.count) return true;
      place -= rows.count;
      return false;
    });
    ZERO_CHECK(holder != rows_.end() && place >= 0, "a row of the matrix is looked up");
    decode(*holder, columns_, place, 1, type, to + i * row_bytes);
  }
  return out;
}

}  // namespace zero
