// Attention: CPU kernels in fp32 and bf16 against LibTorch's operations in fp64.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <limits>

#include "models/ops/attention.h"
#include "models/ops/rotary.h"
#include "tests/unit/models/both_types.h"
#include "tests/unit/models/deterministic.h"

namespace zero::test {
namespace {

struct AttentionCase {
  AttentionShape shape;
  std::int64_t length;
  bool packed;
};

/// Rows of documents of rising lengths, then padding.
Batch packed_batch(std::int64_t length) {
  Batch batch{{}, {}, at::zeros({2, length}, at::kLong), at::full({2, length}, -1, at::kInt)};
  for (int row = 0; row < 2; ++row) {
    int document = 0;
    for (std::int64_t begin = 0, size = 1 + row; begin + size <= length;
         begin += size, size = 2 * size + 1, ++document) {
      batch.documents[row].narrow(0, begin, size).fill_(document);
      batch.positions[row].narrow(0, begin, size).copy_(at::arange(size));
    }
  }
  return batch;
}

struct AttentionResult {
  at::Tensor out, dqkv;
};
AttentionResult attend_to(const at::Tensor& qkv, const at::Tensor& dout, const AttentionShape& shape,
                          const Batch& batch) {
  Rotary rotary(shape.head_dim, 10000, {});
  const at::Tensor leaf = qkv.clone().set_requires_grad(true);
  const at::Tensor out = attention(leaf.clone(), shape, rotary, batch);
  return {out.detach(), torch::autograd::grad({out}, {leaf}, {dout})[0]};
}

AttentionResult run_attention(const AttentionCase& c, const at::Tensor& qkv, const at::Tensor& dout) {
  return attend_to(qkv, dout, c.shape, c.packed ? packed_batch(c.length) : Batch{});
}

TEST(Attention, KernelsAgreeWithFp64) {
  std::vector<AttentionCase> cases{
      {{4, 2, 16}, 1, false},   {{4, 2, 16}, 24, false},      {{2, 2, 64}, 64, false},     {{3, 1, 64}, 65, false},
      {{2, 1, 80}, 130, false}, {{2, 2, 128}, 70, false},     {{1, 1, 256}, 20, false},    {{4, 2, 48}, 200, true},
      {{2, 1, 64}, 300, true},  {{2, 1, 8}, 30, true},        {{2, 1, 16}, 2, true},       {{4, 1, 32}, 140, true},
      {{2, 1, 96}, 193, false}, {{2, 1, 128, 70}, 260, true}, {{2, 2, 64, 65}, 256, false}};
  for (const std::int64_t length : {31, 32, 33, 63, 95, 96, 97}) cases.push_back({{2, 2, 32}, length, false});
  for (const at::ScalarType type : all_types)
    for (const AttentionCase& c : cases) {
      const Both qkv({2, c.length, c.shape.qkv_width()}, 1, type),
          dout({2, c.length, c.shape.heads * c.shape.head_dim}, 2, type);
      const AttentionResult own = run_attention(c, qkv.own, dout.own), exact = run_attention(c, qkv.exact, dout.exact);
      const double limit = type == at::kFloat ? 5e-6 : 2e-2;
      EXPECT_LT(deviation(own.out, exact.out), limit) << c.shape.head_dim << " x " << c.length;
      EXPECT_LT(deviation(own.dqkv, exact.dqkv), limit) << c.shape.head_dim << " x " << c.length;
    }
}

TEST(Attention, PropagatesNaN) {
  for (const at::ScalarType type : all_types) {
    const AttentionCase c{{2, 1, 64}, 150, false};
    const at::Tensor qkv = random({2, c.length, c.shape.qkv_width()}, 1, type),
                     dout = random({2, c.length, 128}, 2, type);
    qkv[1][100][0] = std::numeric_limits<double>::quiet_NaN();  // a query of head 0
    const AttentionResult result = run_attention(c, qkv, dout);
    EXPECT_TRUE(result.out[1][100].narrow(0, 0, 64).isnan().all().item<bool>()) << type;
    EXPECT_FALSE(result.out[1].narrow(1, 64, 64).isnan().any().item<bool>()) << type;
    EXPECT_TRUE(result.dqkv[1][99].narrow(0, 128, 64).isnan().all().item<bool>()) << type;
    for (const std::int64_t part : {128, 192}) {  // a key, then a value
      at::Tensor poisoned = random({2, c.length, c.shape.qkv_width()}, 1, type);
      poisoned[0][70][part] = std::numeric_limits<double>::quiet_NaN();
      const at::Tensor none = run_attention(c, poisoned, dout).out.isnan();
      EXPECT_FALSE(none[1].any().item<bool>() || none[0].narrow(0, 0, 64).any().item<bool>()) << type;
      EXPECT_TRUE(none[0].narrow(0, 70, 80).any(1).all().item<bool>()) << type;
    }
  }
}

// A slow rise of scores along the keys is foreseen; a fast one rescales the sums. Documents begin anew.
TEST(Attention, TakesScoresThatRise) {
  const AttentionShape shape{2, 1, 64};
  constexpr std::int64_t length = 300;
  for (const bool packed : {false, true}) {
    Batch batch = packed ? packed_batch(length) : Batch{{}, {}, {}, {}};
    batch.positions = at::zeros({2, length}, at::kLong);  // no rotation
    for (const at::ScalarType type : all_types)
      for (const double slope : {-0.05, 0.001, 0.02, 0.2, 1.0}) {
        SCOPED_TRACE(::testing::Message() << type << ", " << slope << " a key" << (packed ? ", packed" : ""));
        at::Tensor qkv = random({2, length, shape.qkv_width()}, 1, type);
        qkv.narrow(2, 0, 128).add_(1);
        qkv.narrow(2, 128, 64).add_(at::arange(length).view({1, -1, 1}) * (slope / 8));
        const at::Tensor dout = random({2, length, 128}, 2, type);
        const AttentionResult own = attend_to(qkv, dout, shape, batch),
                              exact = attend_to(qkv.to(at::kDouble), dout.to(at::kDouble), shape, batch);
        // Keys up to 38 enlarge what rounding the output does to the gradients, in LibTorch too.
        const double limit = type == at::kFloat ? 4e-5 : slope < 1 ? 2e-2 : 5e-2;
        EXPECT_LT(deviation(own.out, exact.out), limit);
        EXPECT_LT(deviation(own.dqkv, exact.dqkv), limit);
      }
  }
}

// Sums of exponentials are no larger than with the largest score's exponential at 1.
TEST(Attention, TakesLargeValues) {
  const AttentionShape shape{1, 1, 16};
  at::Tensor qkv = at::zeros({1, 65, 48});
  qkv.narrow(2, 0, 16).fill_(1);
  qkv[0][64].narrow(0, 16, 16).fill_(1.25);
  qkv.narrow(2, 32, 16).fill_(4e36);
  const Batch unrotated{{}, {}, at::zeros({1, 65}, at::kLong), {}};
  for (const at::ScalarType type : all_types) {
    const at::Tensor out = attend_to(qkv.to(type), at::zeros({1, 65, 16}, type), shape, unrotated).out;
    EXPECT_LT((out.to(at::kDouble) / 4e36 - 1).abs().max().item<double>(), 1e-2) << type;
  }
}

// With numbers three times as large, few keys dominate.
TEST(Attention, ErrorIsNoLargerThanLibTorchs) {
  const AttentionCase c{{4, 2, 64}, 256, false};
  for (const at::ScalarType type : all_types)
    for (const int size : {1, 3}) {
      const at::Tensor qkv = random({2, c.length, c.shape.qkv_width()}, 1, type) * size,
                       dout = random({2, c.length, 4 * 64}, 2, type);
      const AttentionResult exact = run_attention(c, qkv.to(at::kDouble), dout.to(at::kDouble)),
                            own = run_attention(c, qkv, dout);
      Rotary rotary(64, 10000, {});
      const at::Tensor leaf = qkv.clone().set_requires_grad(true);
      const auto parts = leaf.view({2, c.length, 8, 64}).split_with_sizes({4, 2, 2}, 2);
      const Rotary::Table table = rotary.table(c.length, type, at::kCPU);
      const at::Tensor theirs = at::scaled_dot_product_attention(rotate(parts[0], table, {}).transpose(1, 2),
                                                                 rotate(parts[1], table, {}).transpose(1, 2),
                                                                 parts[2].transpose(1, 2), {}, 0, true, {}, true)
                                    .transpose(1, 2)
                                    .reshape({2, c.length, -1});
      const at::Tensor gradient = torch::autograd::grad({theirs}, {leaf}, {dout})[0];
      const auto rms = [](const at::Tensor& a, const at::Tensor& b) {
        return (a.to(at::kDouble) - b).square().mean().sqrt().item<double>();
      };
      const double limit = type == at::kFloat ? 1.25 : 1.1;
      EXPECT_LT(rms(own.out, exact.out), limit * rms(theirs.detach(), exact.out)) << type << " " << size;
      EXPECT_LT(rms(own.dqkv, exact.dqkv), limit * rms(gradient, exact.dqkv)) << type << " " << size;
    }
}

// Heads that no kernel takes too, and lengths that leave something over.
TEST(Attention, IsTheSameForAnyNumberOfThreads) {
  const Deterministic while_tested;
  const AttentionCase cases[] = {{{2, 1, 8}, 13, false},    {{2, 2, 8}, 24, false},   {{2, 1, 16, 8}, 24, false},
                                 {{4, 2, 16}, 40, false},   {{2, 1, 8, 5}, 40, true}, {{4, 2, 32}, 150, true},
                                 {{3, 3, 40, 7}, 57, true}, {{4, 1, 64}, 130, false}, {{6, 2, 22}, 301, false}};
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16, at::kHalf})
    for (const AttentionCase& c : cases) {
      const at::Tensor qkv = random({2, c.length, c.shape.qkv_width()}, 1, type),
                       dout = random({2, c.length, c.shape.heads * c.shape.head_dim}, 2, type);
      at::set_num_threads(1);
      const AttentionResult one = run_attention(c, qkv, dout);
      for (const int threads : {1, 2, 3}) {
        at::set_num_threads(threads);
        const AttentionResult again = run_attention(c, qkv, dout);
        SCOPED_TRACE(::testing::Message()
                     << type << ", " << c.shape.head_dim << " x " << c.length << ", " << threads << " threads");
        EXPECT_TRUE(again.out.equal(one.out));
        EXPECT_TRUE(again.dqkv.equal(one.dqkv));
      }
    }
}

TEST(Attention, TakesDocumentsThatComeBack) {
  Batch batch{
      {}, {}, at::tensor({0, 1, 0, 2, 1}, at::kLong).view({1, 5}), at::tensor({0, 0, 1, 0, 1}, at::kInt).view({1, 5})};
  const AttentionShape shape{2, 1, 16};
  Rotary rotary(16, 10000, {});
  const at::Tensor qkv = random({1, 5, shape.qkv_width()}, 1);
  const at::Tensor exact = attention(qkv.clone(), shape, rotary, batch),
                   own = attention(qkv.to(at::kFloat), shape, rotary, batch);
  EXPECT_LT(deviation(own, exact), 5e-6);
}

/// Sizes of the parts of a row: a trunk, its two documents, and padding.
struct TrunkCase {
  std::int64_t trunk, first, second, padding = 0;
  std::int64_t length() const { return trunk + first + second + padding; }
};

Batch with_trunk(const TrunkCase& c) {
  const std::int64_t behind = c.trunk + c.first;
  Batch batch{{}, {}, at::arange(c.length(), at::kLong).view({1, -1}), at::full({1, c.length()}, -1, at::kInt)};
  batch.documents.narrow(1, 0, c.trunk).fill_(trunk_of(0));
  batch.documents.narrow(1, c.trunk, c.first).fill_(0);
  batch.documents.narrow(1, behind, c.second).fill_(1);
  batch.positions.narrow(1, behind, c.second + c.padding).sub_(c.first);
  return batch;
}

/// Computes both documents in rows of their own, each behind its copy of the trunk. The first one's copy takes the
/// trunk's gradient.
AttentionResult attend_apart(const at::Tensor& qkv, const at::Tensor& dout, const AttentionShape& shape,
                             const TrunkCase& c) {
  const std::int64_t whole = c.trunk + c.first;
  const auto second = [&](const at::Tensor& t) {
    return at::cat({t.narrow(1, 0, c.trunk), t.narrow(1, whole, c.second)}, 1);
  };
  at::Tensor its_dout = second(dout).clone();
  its_dout.narrow(1, 0, c.trunk).zero_();
  const AttentionResult a = attend_to(qkv.narrow(1, 0, whole), dout.narrow(1, 0, whole), shape, {}),
                        b = attend_to(second(qkv), its_dout, shape, {});
  AttentionResult both{at::cat({a.out, b.out.narrow(1, c.trunk, c.second)}, 1),
                       at::cat({a.dqkv, b.dqkv.narrow(1, c.trunk, c.second)}, 1)};
  both.dqkv.narrow(1, 0, c.trunk).add_(b.dqkv.narrow(1, 0, c.trunk));
  return both;
}

// Head sizes with and without a kernel; parts that end inside, at and beyond blocks of 64 tokens.
TEST(Attention, BothDocumentsSeeTheirTrunkAndNotEachOther) {
  const TrunkCase cases[] = {{1, 1, 1},    {5, 3, 4, 2},    {64, 64, 64},   {63, 2, 64, 1},
                             {70, 1, 200}, {130, 65, 3, 7}, {10, 200, 130}, {200, 130, 70, 60}};
  for (const AttentionShape& shape : {AttentionShape{4, 2, 64}, AttentionShape{2, 1, 8}, AttentionShape{3, 3, 48}})
    for (const TrunkCase& c : cases) {
      const auto qkv = random({1, c.length(), shape.qkv_width()}, 1),
                 dout = random({1, c.length(), shape.heads * shape.head_dim}, 2);
      const AttentionResult want = attend_apart(qkv, dout, shape, c);
      for (const at::ScalarType type : {at::kDouble, at::kFloat, at::kBFloat16}) {
        SCOPED_TRACE(::testing::Message() << type << ", " << shape.head_dim << " x " << c.length());
        const AttentionResult found = attend_to(qkv.to(type), dout.to(type), shape, with_trunk(c));
        const double limit = type == at::kDouble ? 1e-12 : type == at::kFloat ? 5e-6 : 3e-2;
        const std::int64_t real = c.length() - c.padding;
        EXPECT_LT(deviation(found.out.narrow(1, 0, real), want.out), limit);
        EXPECT_LT(deviation(found.dqkv.narrow(1, 0, real), want.dqkv), limit);
      }
    }
}

// Trunks of two pairs in a row, and rows whose documents no kernel takes.
TEST(Attention, ATrunkBelongsToTwoDocumentsOnly) {
  const AttentionShape shape{2, 1, 16};
  const at::Tensor sees = document_mask(at::tensor({trunk_of(0), 0, 1, trunk_of(2), 2, 3, -1}, at::kInt).view({1, 7}));
  const bool want[7][7] = {
      {1}, {1, 1}, {1, 0, 1}, {0, 0, 0, 1}, {0, 0, 0, 1, 1}, {0, 0, 0, 1, 0, 1}, {0, 0, 0, 0, 0, 0, 1}};
  for (int q = 0; q < 7; ++q)
    for (int k = 0; k < 7; ++k) EXPECT_EQ(sees[0][0][q][k].item<bool>(), want[q][k]) << q << " sees " << k;
  const std::vector<std::vector<std::int32_t>> rows{{trunk_of(0), 0, 1, trunk_of(2), 2, 3, -1},
                                                    {trunk_of(0), 0, 5, 5, 1, 1, -1},
                                                    {0, trunk_of(0), 1, 1, -1, -1, -1},
                                                    {1, trunk_of(1), trunk_of(1), 2, 2, 1, 1}};
  for (const std::vector<std::int32_t>& numbers : rows) {
    Batch batch{{}, {}, at::arange(7, at::kLong).view({1, 7}), at::tensor(numbers, at::kInt).view({1, 7})};
    const at::Tensor qkv = random({1, 7, shape.qkv_width()}, 1), dout = random({1, 7, 32}, 2);
    const AttentionResult exact = attend_to(qkv, dout, shape, batch),
                          own = attend_to(qkv.to(at::kFloat), dout.to(at::kFloat), shape, batch);
    EXPECT_LT(deviation(own.out, exact.out), 5e-6);
    EXPECT_LT(deviation(own.dqkv, exact.dqkv), 5e-6);
  }
}

}  // namespace
}  // namespace zero::test
