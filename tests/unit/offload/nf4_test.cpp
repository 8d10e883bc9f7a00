// NF4 blocks: nearest codes, bitsandbytes' packing, the same numbers in every type.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "offload/quantized/nf4.h"

namespace zero {
namespace {

struct Encoded {
  explicit Encoded(const at::Tensor& values)
      : codes(at::empty({values.numel() / 2}, at::kByte)),
        largest(at::empty({values.numel() / nf4_block}, at::kFloat)) {
    nf4_encode(values.data_ptr<float>(), blocks());
  }
  Nf4Blocks blocks() { return {codes.data_ptr<std::uint8_t>(), largest.data_ptr<float>(), largest.numel()}; }
  at::Tensor decoded(at::ScalarType type) {
    const at::Tensor out = at::empty({codes.numel() * 2}, type);
    nf4_decode(blocks(), out);
    return out;
  }
  at::Tensor codes, largest;
};

at::Tensor random_values(std::int64_t n) {
  return at::randn({n}, at::make_generator<at::CPUGeneratorImpl>(1), at::kFloat);
}

TEST(Nf4, TakesTheNearestCode) {
  const at::Tensor values = random_values(64 * 3000);
  Encoded encoded(values);
  const at::Tensor blocks = values.view({-1, 64}), largest = blocks.abs().amax(1, true);
  EXPECT_TRUE(at::equal(encoded.largest, largest.view({-1})));
  const at::Tensor codes = at::tensor(at::ArrayRef<float>(nf4_codes.data(), 16));
  const at::Tensor nearest = (blocks / largest).unsqueeze(-1).sub(codes).abs().argmin(-1);
  const at::Tensor expected = codes.index({nearest}) * largest;
  // A number between two codes may go either way.
  EXPECT_LT(
      (encoded.decoded(at::kFloat).view({-1, 64}) - blocks).abs().sub((expected - blocks).abs()).max().item<double>(),
      1e-6);
  EXPECT_LT(encoded.decoded(at::kFloat).view({-1, 64}).ne(expected).sum().item<std::int64_t>(), 5);
}

TEST(Nf4, PutsTheFirstOfAPairIntoTheHighHalf) {
  at::Tensor values = at::zeros({64}, at::kFloat);
  values[0] = -2;
  values[1] = 2;
  values[2] = 1.45;
  Encoded encoded(values);
  EXPECT_EQ(encoded.codes[0].item<int>(), 0x0F);
  EXPECT_EQ(encoded.codes[1].item<int>(), 0xE7);
  EXPECT_EQ(encoded.largest.item<float>(), 2);
}

TEST(Nf4, KeepsZerosAndItsOwnNumbers) {
  Encoded zeros(at::zeros({128}, at::kFloat));
  EXPECT_EQ(zeros.decoded(at::kFloat).count_nonzero().item<std::int64_t>(), 0);
  const at::Tensor once = Encoded(random_values(64 * 50)).decoded(at::kFloat);
  EXPECT_TRUE(at::equal(Encoded(once).decoded(at::kFloat), once));
}

TEST(Nf4, RoundsOnceToEveryType) {
  Encoded encoded(random_values(64 * 50));
  const at::Tensor exact = encoded.decoded(at::kFloat);
  for (const at::ScalarType type : {at::kBFloat16, at::kHalf, at::kDouble})
    EXPECT_TRUE(at::equal(encoded.decoded(type), exact.to(type))) << type;
}

}  // namespace
}  // namespace zero
