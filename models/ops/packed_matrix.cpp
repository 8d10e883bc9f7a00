#include "models/ops/packed_matrix.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/StorageImpl.h>

#include <algorithm>

#include "base/error.h"
#include "base/numbers/number_types.h"
#include "models/ops/backends.h"
#include "models/ops/kernels/packed_rows.h"
#include "models/ops/row_dispatch.h"

namespace zero {
namespace {

constexpr std::int64_t tile_values = 1 << 20;  // decoded at a time for many rows; in fp32, 4 MiB

/// The bytes of row `first` of these rows and those after it.
const std::uint8_t* bytes_from(const PackedMatrix::Rows& rows, std::int64_t columns, std::int64_t first) {
  return rows.bytes.const_data_ptr<std::uint8_t>() + ggml_bytes(rows.type, first * columns);
}

/// Rows [n, columns] as [columns / 16, padded n, 16] in fp32, with zeros for the rows that are added.
at::Tensor in_kernel_form(const at::Tensor& a) {
  if (a.size(0) == 1) return a.to(at::kFloat).contiguous();
  constexpr std::int64_t lanes = 16;
  const std::int64_t n = a.size(0), steps = a.size(1) / lanes, padded = kernels::padded_rows(n);
  const at::Tensor form = at::zeros({steps, padded, lanes}, a.options().dtype(at::kFloat));
  form.narrow(1, 0, n).copy_(a.reshape({n, steps, lanes}).transpose(0, 1));
  return form;
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
  return type != GgmlType::f32 && columns > 0 && columns % kernels::packed_row_multiple == 0 &&
         columns % ggml_block(type) == 0;
}

at::Tensor PackedMatrix::tensor(std::vector<Rows> rows, std::int64_t columns, at::ScalarType type) {
  ZERO_CHECK(type == at::kFloat || type == at::kBFloat16, "packed matrices stand for fp32 or bf16");
  std::int64_t count = 0;
  for (const Rows& each : rows) {
    ZERO_CHECK(can_hold(each.type, columns) && each.bytes.is_cpu() && each.bytes.is_contiguous() &&
                   each.bytes.numel() == ggml_bytes(each.type, each.count * columns),
               "the rows of a packed matrix are whole blocks");
    count += each.count;
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
  std::int64_t first = 0;
  for (const Rows& rows : rows_) {
    const at::Tensor part = out.narrow(1, first, rows.count);
    if (a.size(0) <= kernels::most_packed_rows && out.stride(1) == 1)
      multiply_few(rows, part, a, add);
    else
      multiply_many(rows, part, a, add);
    first += rows.count;
  }
}

void PackedMatrix::multiply_few(const Rows& rows, const at::Tensor& out, const at::Tensor& a, bool add) const {
  if (a.size(0) == 0) return;
  const at::Tensor x = in_kernel_form(a);
  const kernels::PackedProduct product{rows.type,
                                       bytes_from(rows, columns_, 0),
                                       x.const_data_ptr<float>(),
                                       out.data_ptr(),
                                       number_of(out.scalar_type()),
                                       a.size(0),
                                       columns_,
                                       out.stride(0),
                                       add};
  by_rows(out, rows.count, columns_,
          [&](std::int64_t begin, std::int64_t end) { kernels::packed_product(product, begin, end); });
}

void PackedMatrix::multiply_many(const Rows& rows, const at::Tensor& out, const at::Tensor& a, bool add) const {
  const std::int64_t most = std::min(rows.count, std::max<std::int64_t>(tile_values / columns_, 1));
  const at::Tensor tile = at::empty({most, columns_}, a.options());
  const auto row_bytes = static_cast<std::int64_t>(columns_ * a.element_size());
  for (std::int64_t first = 0; first < rows.count; first += most) {
    const std::int64_t count = std::min(most, rows.count - first);
    auto* to = static_cast<std::uint8_t*>(tile.data_ptr());
    by_rows(out, count, columns_, [&](std::int64_t begin, std::int64_t end) {
      kernels::unpack_rows(rows.type, bytes_from(rows, columns_, first + begin), (end - begin) * columns_,
                           number_of(a.scalar_type()), to + begin * row_bytes);
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
    kernels::unpack_rows(holder->type, bytes_from(*holder, columns_, place), columns_, number_of(type),
                         to + i * row_bytes);
  }
  return out;
}

}  // namespace zero
