#include "offload/quantized/device_ggml.h"

#include <ATen/ATen.h>
#include <c10/cuda/CUDAStream.h>

#include <cstring>

#include "base/error.h"
#include "base/numbers/ggml_type.h"
#include "base/numbers/number_types.h"

namespace zero {

at::Tensor DeviceGgml::table_of(const std::vector<cuda::GgmlRun>& runs) const {
  const at::Tensor table = at::empty({std::int64_t(runs.size() * sizeof(cuda::GgmlRun))}, at::kByte);
  std::memcpy(table.data_ptr(), runs.data(), table.nbytes());
  return table.to(device_);
}

void DeviceGgml::decode(const at::Tensor& table, const at::Tensor& bytes, const at::Tensor& out) const {
  ZERO_CHECK(out.is_cuda() && out.is_contiguous() && out.numel() % q8_block == 0,
             "blocks are decoded to a flat tensor of whole ones");
  const auto* runs = reinterpret_cast<const cuda::GgmlRun*>(table.const_data_ptr<std::uint8_t>());
  cuda::ggml_decode(
      {runs, int(table.numel() / std::int64_t(sizeof(cuda::GgmlRun))), bytes.const_data_ptr<std::uint8_t>(),
       out.numel() / q8_block, out.data_ptr(), number_of(out.scalar_type())},
      c10::cuda::getCurrentCUDAStream(out.get_device()).stream());
}

}  // namespace zero
