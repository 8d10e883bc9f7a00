// Compares ggml's types on a GPU with the host's, to the bit. Skipped without a GPU.
#include <ATen/ATen.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <gtest/gtest.h>

#include "models/formats/safetensors.h"
#include "models/ggml_values.h"
#include "offload/quantized/device_ggml.h"
#include "zero/core/buffers/ggml_format.h"

namespace zero {
namespace {

const at::Device gpu(at::kCUDA, 0);

bool same_bits(const at::Tensor& on_device, const at::Tensor& host) {
  return at::equal(on_device.to(at::kCPU).view({-1}).view(at::kByte), host.view({-1}).view(at::kByte));
}

class GgmlKernels : public testing::TestWithParam<at::ScalarType> {
 protected:
  void SetUp() override {
    if (at::detail::getCUDAHooks().deviceCount() == 0) GTEST_SKIP() << "no GPU";
  }
};

// Runs of every type, of one block and of many, in one launch.
TEST_P(GgmlKernels, DecodeToTheHostsBits) {
  const DeviceGgml device(gpu);
  SafetensorsFile reference(ZERO_TEST_DATA "/ggml_blocks.safetensors");
  std::vector<cuda::GgmlRun> runs;
  std::vector<at::Tensor> bytes, wanted;
  std::int64_t place = 0, first = 0;
  const auto add = [&](int type, const at::Tensor& part, const at::Tensor& values) {
    runs.push_back({first, place, type});
    const std::int64_t gap = (16 - part.numel() % 16) % 16;
    bytes.push_back(part);
    bytes.push_back(at::zeros({gap}, at::kByte));
    wanted.push_back(values);
    place += part.numel() + gap;
    first += values.numel() / q8_block;
  };
  for (const std::int64_t blocks : {1, 7, 65})
    for (const GgmlType type : {GgmlType::q8_0, GgmlType::f16, GgmlType::q4_0, GgmlType::f32, GgmlType::bf16}) {
      const at::Tensor values = at::randn({blocks * q8_block}, at::make_generator<at::CPUGeneratorImpl>(3), at::kFloat);
      const at::Tensor part = to_ggml(values, type), want = at::empty(values.sizes(), GetParam());
      from_ggml(part.const_data_ptr<std::uint8_t>(), type, want);
      add(int(type), part, want);
      const at::Tensor plain = values.to(GetParam());
      add(-1, plain.view(at::kByte), plain);
    }
  for (const GgmlType type : ggml_types()) {
    if (ggml_block(type) == 1) continue;
    const std::string name = ggml_name(type);
    const at::Tensor part = reference.read(name),
                     want = at::empty({part.numel() / ggml_block_bytes(type) * ggml_block(type)}, GetParam());
    from_ggml(part.const_data_ptr<std::uint8_t>(), type, want);
    add(int(type), part.view({-1}), want);
  }
  const at::Tensor out = at::empty({first * q8_block}, at::TensorOptions().dtype(GetParam()).device(gpu));
  device.decode(device.table_of(runs), at::cat(bytes).to(gpu), out);
  EXPECT_TRUE(same_bits(out, at::cat(wanted)));
}

INSTANTIATE_TEST_SUITE_P(Types, GgmlKernels, testing::Values(at::kFloat, at::kBFloat16, at::kHalf));

// A group of a model, whose parts are written on the host and brought to the GPU.
TEST(GgmlFormatOnDevice, HoldsAndDecodesTheHostsBits) {
  if (at::detail::getCUDAHooks().deviceCount() == 0) GTEST_SKIP() << "no GPU";
  const FlatLayout layout({{{"norm", {96}}}, {{"q", {40, 96}}, {"k", {8, 96}}}, {{"odd", {7, 33}}}}, 2, q8_block);
  const at::Tensor flat = at::randn({layout.numel()}, at::make_generator<at::CPUGeneratorImpl>(1), at::kFloat);
  const auto type_of = [](const TensorSpec& tensor) -> std::optional<GgmlType> {
    if (tensor.name == "q") return GgmlType::q8_0;
    return tensor.name == "k" ? std::optional(GgmlType::q4_0) : std::nullopt;
  };
  const auto decoded = [&](at::Device device) {
    const GgmlFormat format(layout, 2, type_of, at::kBFloat16, device);
    const at::Tensor all = at::zeros({format.all_numel()}, at::TensorOptions().dtype(at::kByte).device(device));
    for (int s = 0; s < 2; ++s) {
      const at::Tensor part = flat.narrow(0, s * layout.shard_numel(), layout.shard_numel());
      WeightReader reader{s, layout.shard_numel(), at::kFloat, device, {}, {}, {}};
      reader.read = [&](std::int64_t begin, const at::Tensor& to) { to.copy_(part.narrow(0, begin, to.numel())); };
      reader.read_as = [&](std::int64_t begin, std::int64_t count, GgmlType type, const at::Tensor& to) {
        to_ggml(part.narrow(0, begin, count), type, to.data_ptr<std::uint8_t>());
      };
      format.encode(reader, all.narrow(0, s * format.rest_numel(), format.rest_numel()));
    }
    const at::Tensor full = at::empty({layout.numel()}, at::TensorOptions().dtype(at::kBFloat16).device(device));
    format.decode(all, full);
    return full;
  };
  EXPECT_TRUE(same_bits(decoded(gpu), decoded(at::kCPU)));
}

}  // namespace
}  // namespace zero
