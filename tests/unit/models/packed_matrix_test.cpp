// Weights in ggml types: their values, and products with few rows and many compared with fp64, in every type.
#include "models/ops/packed_matrix.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "base/error.h"
#include "base/numbers/ggml_codes.h"
#include "models/ggml_values.h"
#include "models/nn/embedding.h"
#include "models/ops/kernels/panel_layout.h"
#include "models/ops/matrix_product.h"
#include "tests/unit/models/deterministic.h"
#include "tests/unit/models/small_model.h"
#include "tests/unit/simd_targets.h"

namespace zero::test {
namespace packed_matrix_test {

std::vector<GgmlType> packed_types() {
  std::vector<GgmlType> types = ggml_types();
  std::erase(types, GgmlType::f32);
  return types;
}

/// The places of a block's fp16 numbers.
std::vector<std::int64_t> halves_of(GgmlType type) {
  if (type == GgmlType::q2_k) return {80, 82};
  if (type == GgmlType::q3_k) return {108};
  if (type == GgmlType::q6_k) return {208};
  const bool two = type == GgmlType::q4_1 || type == GgmlType::q5_1 || type == GgmlType::q4_k || type == GgmlType::q5_k;
  return two ? std::vector<std::int64_t>{0, 2} : std::vector<std::int64_t>{0};
}

/// Rows with random codes, and with scales of both signs between 2^-11 and 2^-2.
PackedMatrix::Rows random_rows(GgmlType type, std::int64_t count, std::int64_t columns, int seed) {
  const std::int64_t numel = count * columns;
  if (ggml_block(type) == 1) return {type, count, to_ggml(random({numel}, seed, at::kFloat), type)};
  at::manual_seed(seed);
  const std::int64_t block = ggml_block_bytes(type);
  const at::Tensor bytes = at::randint(256, {ggml_bytes(type, numel)}, at::kByte), blocks = bytes.view({-1, block});
  for (const std::int64_t at : halves_of(type)) {
    const at::Tensor sizes = at::exp2(at::rand({blocks.size(0), 1}) * 9 - 11),
                     signs = at::randint(2, sizes.sizes(), at::kFloat) * 2 - 1;
    blocks.narrow(1, at, 2).copy_((sizes * signs).to(at::kHalf).contiguous().view(at::kByte));
  }
  return {type, count, bytes};
}

/// The values of blocks, each by itself.
template <class Layout>
void decode(const std::uint8_t* blocks, at::Tensor values) {
  float* out = values.mutable_data_ptr<float>();
  for (std::int64_t i = 0; i < values.numel(); ++i)
    out[i] = ggml::value_of<Layout>(blocks + i / Layout::values * Layout::bytes, static_cast<int>(i % Layout::values));
}

at::Tensor values_of(const PackedMatrix::Rows& rows, std::int64_t columns) {
  const at::Tensor values = at::empty({rows.count, columns}, at::kFloat);
  const auto* bytes = rows.bytes.const_data_ptr<std::uint8_t>();
  if (kernels::has_panels(rows.type))
    kernels::with_layout(rows.type, [&]<class Layout>(const Layout*) { decode<Layout>(bytes, values); });
  else
    from_ggml(bytes, rows.type, values);
  return values;
}

/// A product in fp64, and the sums of the sizes of its terms.
struct Exact {
  at::Tensor product, terms;

  Exact(const at::Tensor& a, const at::Tensor& w)
      : product(at::mm(a.to(at::kDouble), w.to(at::kDouble).t())),
        terms(at::mm(a.to(at::kDouble).abs(), w.to(at::kDouble).abs().t())) {}

  /// The largest error of `out`, the first rows and columns of the product added to `before`. Its unit is the rounding
  /// error of the sum of the sizes of its terms.
  double error(const at::Tensor& out, const at::Tensor& before) const {
    if (out.numel() == 0) return 0;
    const auto of_out = [&](const at::Tensor& all) { return all.narrow(0, 0, out.size(0)).narrow(1, 0, out.size(1)); };
    const at::Tensor wide = before.to(at::kDouble), want = of_out(product) + wide,
                     bound = (of_out(terms) + wide.abs()) * 1e-6;
    const double bits = out.scalar_type() == at::kFloat ? 0 : 1.0 / 256;
    return (out.to(at::kDouble) - want).abs().div(bound + want.abs() * bits + 1e-30).max().item<double>();
  }
};

class Packed : public ::testing::TestWithParam<GgmlType> {
 protected:
  // Rows of one block and of several, and numbers of columns around the kernel's four and sixteen.
  std::vector<std::int64_t> lengths() const {
    const std::int64_t block = std::max<std::int64_t>(ggml_block(GetParam()), 32);
    return {block, 3 * block, 4096 + 2 * block};
  }
};

TEST_P(Packed, RowsHaveTheBitsOfTheReference) {
  for (const std::int64_t length : lengths())
    with_every_simd_target([&](const char* target) {
      const auto rows = random_rows(GetParam(), 35, length, 1), more = random_rows(GgmlType::q8_0, 2, length, 2);
      const at::Tensor ids = at::tensor({34, 0, 36, 35, 15, 16, 3}, at::kLong),
                       want = at::cat({values_of(rows, length), values_of(more, length)}).index_select(0, ids);
      for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
        const at::Tensor tensor = PackedMatrix::tensor({rows, more}, length, type),
                         got = embed(ids.view({1, 7}), tensor).squeeze(0);
        EXPECT_TRUE(at::equal(got.view(at::kByte), want.to(type).view(at::kByte))) << length << " " << target;
      }
    });
}

TEST_P(Packed, ProductsOfFewRowsAreThoseOfFp64RoundedOnce) {
  for (const std::int64_t length : lengths())
    for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
      const auto rows = random_rows(GetParam(), 33, length, 1);
      const at::Tensor a = random({8, length}, 2, type), before = random({8, 33}, 3, type);
      const Exact exact(a, values_of(rows, length));
      for (const std::int64_t columns : {1, 4, 5, 19, 33}) {
        const at::Tensor bytes = rows.bytes.narrow(0, 0, ggml_bytes(GetParam(), columns * length)),
                         w = PackedMatrix::tensor({{GetParam(), columns, bytes}}, length, type).t();
        for (std::int64_t n = 0; n <= 8; ++n)
          with_every_simd_target([&](const char* target) {
            SCOPED_TRACE(::testing::Message() << n << " x " << length << " x " << columns << " " << target);
            const at::Tensor few = a.narrow(0, 0, n), product = matrix_product(few, w);
            EXPECT_LE(exact.error(product, at::zeros_like(product)), 1);
            const at::Tensor added = before.narrow(0, 0, n).narrow(1, 0, columns);
            at::Tensor sum = added.clone();
            matrix_product_into(sum, few, w, true);
            EXPECT_LE(exact.error(sum, added), 1);
          });
      }
    }
}

// Inputs become integers with an exponent for each 32 of them, so a large one costs its neighbours bits.
TEST_P(Packed, InputsKeep22BitsOfTheLargest) {
  const std::int64_t length = std::max<std::int64_t>(2 * ggml_block(GetParam()), 64);
  const auto rows = random_rows(GetParam(), 17, length, 1);
  const at::Tensor w = PackedMatrix::tensor({rows}, length, at::kFloat).t(), values = values_of(rows, length),
                   plain = random({3, length}, 2, at::kFloat), sizes = values.to(at::kDouble).abs().sum(1);
  at::Tensor outlier = plain.clone();
  outlier.narrow(1, 7, 1).fill_(1e6);
  with_every_simd_target([&](const char* target) {
    // Below 2^-105 an input has an absolute error of 2^-127.
    for (const at::Tensor& a : {plain, plain * 1e30, plain * 1e-30, plain * 1e-36, outlier, at::zeros_like(plain)}) {
      const double largest = a.abs().max().item<double>();
      const Exact exact(a, values);
      const at::Tensor error = (matrix_product(a, w).to(at::kDouble) - exact.product).abs(),
                       bound = sizes * std::max(largest * 0x1p-22, 0x1p-127) + exact.terms * 1e-6;
      EXPECT_TRUE(at::less_equal(error, bound).all().item<bool>()) << largest << " " << target << "\n" << error / bound;
    }
  });
}

// Sums of inputs may overflow where products do not: the scales are 2^-24.
TEST_P(Packed, ProductsOfTheLargestInputsAreFinite) {
  const std::int64_t length = std::max<std::int64_t>(ggml_block(GetParam()), 32);
  auto rows = random_rows(GetParam(), 17, length, 1);
  if (ggml_block(GetParam()) == 1) return;
  for (const std::int64_t at : halves_of(GetParam()))
    rows.bytes.view({-1, ggml_block_bytes(GetParam())}).narrow(1, at, 2).copy_(at::tensor({1, 0}, at::kByte));
  const at::Tensor w = PackedMatrix::tensor({rows}, length, at::kFloat).t(),
                   a = at::full({2, length}, 3e38, at::kFloat);
  const Exact exact(a, values_of(rows, length));
  with_every_simd_target([&](const char* target) {
    const at::Tensor product = matrix_product(a, w);
    EXPECT_LE(exact.error(product, at::zeros_like(product)), 1) << target;
  });
}

// With inputs of one sign, the parts of a long sum cancel where codes have minima.
TEST_P(Packed, LongSumsOfOneSignAreAccurate) {
  const std::int64_t length = 14336;
  const auto rows = random_rows(GetParam(), 17, length, 1);
  const at::Tensor w = PackedMatrix::tensor({rows}, length, at::kFloat).t(),
                   a = random({2, length}, 2, at::kFloat).abs();
  const Exact exact(a, values_of(rows, length));
  with_every_simd_target([&](const char* target) {
    const at::Tensor product = matrix_product(a, w);
    EXPECT_LE(exact.error(product, at::zeros_like(product)), 1) << target;
  });
}

TEST_P(Packed, NumbersThatAreNoneStayInTheirRow) {
  const std::int64_t length = std::max<std::int64_t>(2 * ggml_block(GetParam()), 64);
  const at::Tensor w = PackedMatrix::tensor({random_rows(GetParam(), 17, length, 1)}, length, at::kFloat).t();
  const float infinity = std::numeric_limits<float>::infinity(), none = std::numeric_limits<float>::quiet_NaN();
  with_every_simd_target([&](const char* target) {
    for (const float bad : {infinity, -infinity, none}) {
      at::Tensor a = random({3, length}, 2, at::kFloat);
      const at::Tensor want = matrix_product(a, w);
      a[1][length - 1] = bad;
      const at::Tensor got = matrix_product(a, w);
      EXPECT_FALSE(at::isfinite(got[1]).any().item<bool>()) << bad << " " << target;
      EXPECT_TRUE(got[0].equal(want[0]) && got[2].equal(want[2])) << bad << " " << target;
    }
  });
}

// As many rows as prompts have are multiplied with decoded values, in parts of the matrix.
TEST_P(Packed, ProductsOfManyRowsAreThoseOfTheDecodedValues) {
  const Deterministic while_tested;
  const std::int64_t length = 4096, columns = 300;  // more than a part
  const auto rows = random_rows(GetParam(), columns, length, 1), more = random_rows(GgmlType::q4_0, 7, length, 2);
  const at::Tensor values = at::cat({values_of(rows, length), values_of(more, length)});
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16})
    for (const std::int64_t n : {9, 40}) {
      const at::Tensor a = random({n, length}, 3, type), before = random({n, columns + 7}, 4, type),
                       w = PackedMatrix::tensor({rows, more}, length, type);
      at::Tensor sum = before.clone();
      matrix_product_into(sum, a, w.t(), true);
      EXPECT_LE(Exact(a, values.to(type)).error(sum, before), type == at::kFloat ? 4 : 1) << n;
    }
}

TEST_P(Packed, ARowDoesNotDependOnItsNeighboursNorOnThreads) {
  const std::int64_t length = 512, columns = 999;
  const Deterministic while_tested;
  const at::Tensor w = PackedMatrix::tensor({random_rows(GetParam(), columns, length, 1)}, length, at::kFloat),
                   a = random({9, length}, 2, at::kFloat);
  at::set_num_threads(1);
  const at::Tensor many = matrix_product(a, w.t()), few = matrix_product(a.narrow(0, 0, 8), w.t());
  for (const int threads : {1, 2}) {
    at::set_num_threads(threads);
    EXPECT_TRUE(matrix_product(a, w.t()).equal(many)) << threads;
    for (std::int64_t n = 1; n <= 8; ++n)
      EXPECT_TRUE(matrix_product(a.narrow(0, 8 - n, n), w.t()).equal(few.narrow(0, 8 - n, n))) << n << " " << threads;
  }
}

INSTANTIATE_TEST_SUITE_P(Types, Packed, ::testing::ValuesIn(packed_types()),
                         [](const auto& info) { return ggml_name(info.param); });

// Matrices of one product may have a type each, as the values' projection has in files of llama.cpp.
TEST(PackedMatrix, AProductMayHavePartsOfSeveralTypes) {
  const auto first = random_rows(GgmlType::q4_k, 6, 512, 1), second = random_rows(GgmlType::q6_k, 3, 512, 2);
  const at::Tensor w = PackedMatrix::tensor({first, second}, 512, at::kFloat), a = random({2, 512}, 3, at::kFloat);
  const at::Tensor values = at::cat({values_of(first, 512), values_of(second, 512)}), got = matrix_product(a, w.t());
  EXPECT_LE(Exact(a, values).error(got, at::zeros_like(got)), 1);
}

TEST(PackedMatrix, OnlyItsOperationsReadIt) {
  const at::Tensor w = PackedMatrix::tensor({random_rows(GgmlType::q8_0, 4, 64, 1)}, 64, at::kFloat),
                   plain = at::ones({4, 64});
  EXPECT_NE(PackedMatrix::of(w), nullptr);
  EXPECT_EQ(PackedMatrix::of(w.t()), PackedMatrix::of(w));
  EXPECT_EQ(PackedMatrix::of(w.detach()), PackedMatrix::of(w));
  EXPECT_EQ(PackedMatrix::of(plain), nullptr);
  EXPECT_THAT([&] { at::sum(w); },
              ::testing::ThrowsMessage<c10::Error>(::testing::HasSubstr("held in the types of its file")));
}

TEST(PackedMatrix, FillsPanelsUp) {
  EXPECT_EQ(PackedMatrix::bytes(GgmlType::q8_0, 1, 64), 16 * 68);
  EXPECT_EQ(PackedMatrix::bytes(GgmlType::q8_0, 17, 64), 32 * 68);
  EXPECT_EQ(PackedMatrix::bytes(GgmlType::bf16, 17, 64), 17 * 128);
}

TEST(PackedMatrix, HoldsWholeBlocksOnly) {
  EXPECT_TRUE(PackedMatrix::can_hold(GgmlType::q4_k, 512));
  EXPECT_FALSE(PackedMatrix::can_hold(GgmlType::q4_k, 288));
  EXPECT_FALSE(PackedMatrix::can_hold(GgmlType::bf16, 48));
  EXPECT_FALSE(PackedMatrix::can_hold(GgmlType::f32, 512));
  EXPECT_THROW(PackedMatrix::tensor({{GgmlType::q8_0, 2, at::empty({67}, at::kByte)}}, 32, at::kFloat), InternalError);
}

}  // namespace packed_matrix_test
}  // namespace zero::test
