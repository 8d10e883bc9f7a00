#include "offload/quantized/device_nf4.h"

#include <ATen/ATen.h>
#include <c10/cuda/CUDAStream.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/numbers/number_types.h"
#include "offload/quantized/cuda/nf4_kernels.h"

namespace zero {
namespace {

constexpr int middles_at = 16, map_at = 32, tables_numel = 32 + 256;

at::Tensor make_tables(at::Device device) {
  const at::Tensor tables = at::zeros({tables_numel}, at::kFloat);
  float* to = tables.data_ptr<float>();
  std::copy(nf4_codes.begin(), nf4_codes.end(), to);
  for (int i = 0; i < 15; ++i) to[middles_at + i] = (nf4_codes[i] + nf4_codes[i + 1]) / 2;
  std::copy(dynamic_map().begin(), dynamic_map().end(), to + map_at);
  return tables.to(device);
}

cuda::Nf4Tables parts_of(const at::Tensor& tables) {
  const float* begin = tables.const_data_ptr<float>();
  return {begin, begin + middles_at, begin + map_at};
}

}  // namespace

DeviceNf4::DeviceNf4(at::Device device) : tables_(make_tables(device)) {}

void* DeviceNf4::stream() const { return c10::cuda::getCurrentCUDAStream(tables_.get_device()).stream(); }

void DeviceNf4::encode(const at::Tensor& values, const Nf4Blocks& out) const {
  ZERO_CHECK(values.is_cuda() && values.is_contiguous() && values.scalar_type() == at::kFloat &&
                 values.numel() == out.blocks * nf4_block,
             "fp32 numbers of whole blocks are encoded");
  cuda::nf4_encode({values.const_data_ptr<float>(), out.codes, out.largest, out.blocks, parts_of(tables_)}, stream());
}

at::Tensor DeviceNf4::table_of(const std::vector<cuda::Nf4Run>& runs) const {
  const at::Tensor table = at::empty({std::int64_t(runs.size() * sizeof(cuda::Nf4Run))}, at::kByte);
  std::memcpy(table.data_ptr(), runs.data(), table.nbytes());
  return table.to(tables_.device());
}

void DeviceNf4::decode(const at::Tensor& table, const at::Tensor& bytes, const at::Tensor& out) const {
  ZERO_CHECK(out.is_cuda() && out.is_contiguous() && out.numel() % nf4_block == 0,
             "NF4 blocks are decoded to a flat tensor of whole ones");
  const auto* runs = reinterpret_cast<const cuda::Nf4Run*>(table.const_data_ptr<std::uint8_t>());
  cuda::nf4_decode({runs, int(table.numel() / std::int64_t(sizeof(cuda::Nf4Run))), bytes.const_data_ptr<std::uint8_t>(),
                    out.numel() / nf4_block, parts_of(tables_), out.data_ptr(), number_of(out.scalar_type())},
                   stream());
}

}  // namespace zero
