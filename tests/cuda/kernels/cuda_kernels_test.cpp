// Every kernel against LibTorch's operations in fp64 on the CPU. Skipped without a GPU.
#include <ATen/ATen.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "comm/decorators/staged_communicator.h"
#include "comm/fake/fake_communicator.h"
#include "models/families/families.h"
#include "models/model.h"
#include "models/nn/device_batch.h"
#include "models/ops/attention.h"
#include "models/ops/cross_entropy.h"
#include "models/ops/cuda/device_operators.h"
#include "models/ops/cuda/device_setting.h"
#include "models/ops/low_rank.h"
#include "models/ops/rms_norm.h"
#include "models/ops/rotary.h"
#include "models/ops/swiglu.h"
#include "zero/core/chain.h"
#include "zero/core/engine.h"
#include "zero/optim/kernels/device_step.h"
#include "zero/optim/optimizer_table.h"

namespace zero {
namespace {

const at::Device gpu(at::kCUDA, 0);

class Kernels : public testing::TestWithParam<at::ScalarType> {
 protected:
  void SetUp() override {
    if (at::detail::getCUDAHooks().deviceCount() == 0) GTEST_SKIP() << "no GPU";
  }
  /// Values that differ everywhere and are exact in the type, on the CPU in fp64.
  at::Tensor values(at::IntArrayRef shape, double shift = 0) const {
    const at::Tensor all = at::arange(c10::multiply_integers(shape), at::kDouble).view(shape);
    return ((all * 0.7391 + shift).sin() * 1.7).to(GetParam()).to(at::kDouble);
  }
  at::Tensor up(const at::Tensor& t) const { return t.to(gpu, GetParam()).contiguous(); }
  double tolerance() const { return GetParam() == at::kFloat ? 3e-6 : GetParam() == at::kHalf ? 2e-3 : 1.2e-2; }

  void expect_near(const at::Tensor& got, const at::Tensor& want, const char* what) const {
    const at::Tensor g = got.to(at::kCPU, at::kDouble);
    ASSERT_EQ(g.sizes(), want.sizes()) << what;
    EXPECT_LT(((g - want).norm() / want.norm()).item<double>(), tolerance()) << what;
  }
};

TEST_P(Kernels, RmsNorm) {
  for (std::int64_t hidden : {64, 288, 2048, 8192}) {
    const at::Tensor x = values({37, hidden}), w = values({hidden}, 0.3), dy = values({37, hidden}, 0.9);
    const at::Tensor rstd = (x.square().mean(1) + 1e-5).rsqrt(), n = x * rstd.unsqueeze(1), g = dy * w;
    ASSERT_TRUE(cuda::takes(up(x), up(w)));
    const RmsNormed out = rms_norm(up(x), up(w), 1e-5);
    expect_near(out.y, n * w, "y");
    EXPECT_TRUE(at::equal(out.y, rms_norm_again(up(x), up(w), out.rstd)));
    const RmsNormGradients back = rms_norm_backward(up(dy), up(x), up(w), out.rstd, true);
    expect_near(back.x, (g - n * (g * n).mean(1, true)) * rstd.unsqueeze(1), "dx");
    expect_near(back.weight, (dy * n).sum(0), "dweight");
    const RmsNormGradients again = rms_norm_backward(up(dy), up(x), up(w), out.rstd, true);
    EXPECT_TRUE(at::equal(back.weight, again.weight)) << "bits change between runs";
    const at::Tensor beside = values({37, hidden}, 2.1);
    const RmsNormGradients sum = rms_norm_backward(up(dy), up(x), up(w), out.rstd, true, up(beside));
    expect_near(sum.x, (g - n * (g * n).mean(1, true)) * rstd.unsqueeze(1) + beside, "dx and what is beside it");
    EXPECT_TRUE(at::equal(sum.weight, back.weight));
  }
}

TEST_P(Kernels, Swiglu) {
  const std::int64_t inner = 176;
  const at::Tensor x = values({41, 2 * inner}) * 3, dy = values({41, inner}, 0.2);
  const at::Tensor gate = x.narrow(1, 0, inner), rest = x.narrow(1, inner, inner), s = gate.sigmoid();
  expect_near(swiglu(up(x)), gate * s * rest, "y");
  expect_near(swiglu_backward(up(dy), up(x)), at::cat({dy * rest * s * (1 + gate * (1 - s)), dy * gate * s}, 1), "d");
}

TEST_P(Kernels, CrossEntropy) {
  for (std::int64_t vocabulary : {1003, 1024}) {  // rows that begin anywhere, and at whole vectors
    const at::Tensor logits = values({33, vocabulary}) * 5, targets = at::arange(33, at::kLong) * 30;
    targets[7] = -100;
    const at::Tensor kept = targets >= 0, exact = logits.to(GetParam()).to(at::kDouble), lse = exact.logsumexp(1);
    const at::Tensor losses = (lse - exact.gather(1, targets.clamp_min(0).unsqueeze(1)).squeeze(1)) * kept;
    at::Tensor on_gpu = up(logits);
    const CrossEntropy out = cross_entropy(on_gpu, targets.to(gpu));
    EXPECT_NEAR(out.loss.item<double>() / losses.sum().item<double>(), 1, 1e-5) << vocabulary;
    cross_entropy_backward_(on_gpu, targets.to(gpu), out.lse, at::full({}, 0.5, at::TensorOptions().device(gpu)));
    at::Tensor d = exact.softmax(1);
    d.scatter_add_(1, targets.clamp_min(0).unsqueeze(1), at::full({33, 1}, -1.0, at::kDouble));
    expect_near(on_gpu, d * kept.unsqueeze(1) * 0.5, "dlogits");
    at::Tensor at_once = up(logits);
    const CrossEntropy both =
        cross_entropy_gradient_(at_once, targets.to(gpu), at::full({}, 0.5, at::TensorOptions().device(gpu)));
    EXPECT_TRUE(at::equal(both.lse, out.lse) && at::equal(both.loss, out.loss));
    EXPECT_TRUE(at::equal(at_once, on_gpu)) << "loss and gradient in one pass";
    targets[3] = 5000;
    EXPECT_TRUE(std::isnan(cross_entropy(up(logits), targets.to(gpu)).loss.item<double>()));
    // A row that begins with nothing but -inf has a loss.
    at::Tensor barred = logits.clone();
    barred.narrow(1, 0, 900).fill_(-std::numeric_limits<double>::infinity());
    const at::Tensor late = at::full({33}, 950, at::kLong);
    at::Tensor of_barred = up(barred);
    const CrossEntropy found =
        cross_entropy_gradient_(of_barred, late.to(gpu), at::ones({}, at::TensorOptions().device(gpu)));
    const at::Tensor rest = barred.to(GetParam()).to(at::kDouble).narrow(1, 900, vocabulary - 900);
    EXPECT_NEAR(found.loss.item<double>() / (rest.logsumexp(1) - rest.select(1, 50)).sum().item<double>(), 1, 1e-5);
    EXPECT_TRUE(of_barred.isfinite().all().item<bool>());
    at::Tensor spoilt = up(logits);
    spoilt[5][500] = std::numeric_limits<double>::quiet_NaN();
    targets[3] = 0;
    EXPECT_TRUE(std::isnan(cross_entropy(spoilt, targets.to(gpu)).loss.item<double>()));
  }
}

// Heads of whole vectors and of others, more tokens than a block takes, gradients that lie as attention leaves them.
TEST_P(Kernels, RotationAndItsGradient) {
  for (const std::int64_t d : {16, 12})
    for (const std::int64_t T : {11, 8, 1}) {
      const AttentionShape shape{6, 2, d};
      const at::Tensor qkv = values({2, T, shape.qkv_width()}),
                       positions = at::arange(2 * T, at::kLong).flip(0).view({2, T});
      for (const at::Tensor& rows : {at::Tensor(), positions}) {
        Rotary rotary(d, 10000, std::nullopt);
        const Rotary::Table table = rotary.table(2 * T, at::kFloat, gpu),
                            exact = Rotary(d, 10000, std::nullopt).table(2 * T, at::kDouble, at::kCPU);
        const at::Tensor parts = qkv.view({2, T, -1, d});
        const at::Tensor in = up(qkv).set_requires_grad(true);
        const cuda::TurnedHeads heads = cuda::turn_heads(in, shape, table, rows.defined() ? rows.to(gpu) : rows);
        expect_near(heads.q.detach(), rotate(parts.narrow(2, 0, 6), exact, rows), "q");
        expect_near(heads.k.detach(), rotate(parts.narrow(2, 6, 2), exact, rows), "k");
        expect_near(heads.v.detach(), parts.narrow(2, 8, 2), "v");
        EXPECT_EQ(heads.v.data_ptr(), in.select(2, 8 * d).data_ptr()) << "it was copied";
        // Turning back gives the input, wherever the gradients lie.
        const auto elsewhere = [](const at::Tensor& t) { return t.transpose(1, 2).contiguous().transpose(1, 2); };
        torch::autograd::backward({heads.q, heads.k, heads.v},
                                  {elsewhere(heads.q.detach()), heads.k.detach().clone(), elsewhere(heads.v.detach())});
        expect_near(in.grad(), qkv, "gradient");
      }
    }
}

// A tensor that is not contiguous is copied, and keeps its values.
TEST_P(Kernels, RotationCopiesWhatIsNotContiguous) {
  const AttentionShape shape{2, 1, 16};
  const at::Tensor all = up(values({2, 5, shape.qkv_width() + 8})), in = all.narrow(2, 0, shape.qkv_width());
  const at::Tensor before = in.clone();
  Rotary rotary(16, 10000, std::nullopt);
  const cuda::TurnedHeads heads = cuda::turn_heads(in, shape, rotary.table(5, at::kFloat, gpu), {});
  EXPECT_TRUE(at::equal(in, before));
  EXPECT_FALSE(at::equal(heads.q, before.view({2, 5, 4, 16}).narrow(2, 0, 2)));
}

TEST_P(Kernels, AdamWAndWhetherAllIsFinite) {
  const std::int64_t n = 100003;
  const auto f32 = [&](double shift) { return values({n}, shift).to(at::kFloat); };
  const at::Tensor master = f32(0), gradient = up(values({n}, 0.5)), on_cpu = gradient.to(at::kCPU).contiguous();
  at::Tensor p = master.clone(), m = at::zeros_like(p), v = at::zeros_like(p), w = p.to(GetParam());
  at::Tensor dp = master.to(gpu), dm = at::zeros_like(dp), dv = at::zeros_like(dp), dw = dp.to(GetParam());
  const at::TensorOptions f64 = at::TensorOptions().dtype(at::kDouble).device(gpu);
  const at::Tensor numbers = at::zeros({StepNumbers::count}, f64), scratch = at::zeros({device_norm_blocks}, f64);
  const auto adamw = optimizer_row("adamw").make({});
  for (int step = 1; step <= 3; ++step) {
    numbers.narrow(0, StepNumbers::sum_of_squares, 1).zero_();
    device_add_sum_of_squares(gradient, scratch, numbers);
    device_judge_step(numbers, {1.0, 1.0, 0.9, 0.95});
    const double norm = on_cpu.to(at::kDouble).norm().item<double>();
    EXPECT_NEAR(numbers[StepNumbers::norm].item<double>() / norm, 1, 1e-12);
    UpdateContext context{{{.lr = 1e-2, .weight_decay = 0.1, .beta2 = 0.95}, std::min(1.0, 1.0 / (norm + 1e-6)), step}};
    context.numbers = &numbers;
    adamw->update({p, {m, v}, on_cpu, w}, context);
    adamw->update({dp, {dm, dv}, gradient, dw}, context);
  }
  EXPECT_LT((dp.cpu() - p).abs().max().item<double>(), 1e-6);
  const at::Tensor before = dp.clone();
  gradient[17] = std::numeric_limits<double>::infinity();
  numbers.narrow(0, StepNumbers::sum_of_squares, 1).zero_();
  device_add_sum_of_squares(gradient, scratch, numbers);
  device_judge_step(numbers, {1.0, 1.0, 0.9, 0.95});
  UpdateContext context;
  context.numbers = &numbers;
  adamw->update({dp, {dm, dv}, gradient, dw}, context);
  EXPECT_EQ(numbers[StepNumbers::finite].item<double>(), 0);
  EXPECT_EQ(numbers[StepNumbers::steps].item<double>(), 3);
  EXPECT_TRUE(at::equal(dp, before)) << "an update with an infinite gradient";
}

TEST_P(Kernels, AdamWHasTheSameBitsWhereverASpanBegins) {
  const std::int64_t n = 1027;
  const auto adamw = optimizer_row("adamw").make({});
  UpdateContext context{{{.lr = 1e-2, .weight_decay = 0.01, .beta2 = 0.95}, 0.5, 2}};
  const at::Tensor numbers = step_numbers(context).to(gpu);
  context.numbers = &numbers;
  std::vector<at::Tensor> want;
  for (const std::int64_t begin : {0, 1, 2, 4}) {
    const auto at_begin = [&](const at::Tensor& values) {
      return at::cat({at::zeros({begin}, values.options()), values}).to(gpu).narrow(0, begin, n);
    };
    const at::Tensor p = at_begin(values({n}).to(at::kFloat)), m = at_begin(values({n}, 0.1).to(at::kFloat)),
                     v = at_begin(values({n}, 0.2).square().to(at::kFloat)), w = at_begin(at::zeros({n}, GetParam()));
    adamw->update({p, {m, v}, at_begin(values({n}, 0.3).to(GetParam())), w}, context);
    if (want.empty()) want = {p.cpu(), m.cpu(), v.cpu(), w.cpu()};
    const std::vector<at::Tensor> got{p.cpu(), m.cpu(), v.cpu(), w.cpu()};
    for (std::size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(at::equal(got[i], want[i])) << begin << " " << i;
  }
}

// Rows of several samples, a width that is no whole group of draws, and numbers beyond 32 bits.
TEST_P(Kernels, DropoutMaskHasTheHostsBits) {
  Dropout masks;
  masks.seed = 0x9E3779B97F4A7C15ull;
  masks.first_sample = (std::int64_t(1) << 31) + 3;
  masks.sequence = 5;
  for (const double dropout : {0.1, 0.5, 0.99})
    for (const std::int64_t columns : {16, 33, 288}) {
      masks.share = dropout;
      masks.first_row = columns % 5;
      masks.first_column = columns == 33 ? 45 : 0;
      const at::Tensor z = at::zeros({17, columns}, GetParam()), want = dropout_mask(masks, z),
                       got = dropout_mask(masks, z.to(gpu));
      ASSERT_TRUE(got.is_cuda());
      EXPECT_TRUE(at::equal(got.cpu(), want)) << columns;
      EXPECT_GT(want.count_nonzero().item<std::int64_t>(), 0);
      EXPECT_LT(want.count_nonzero().item<std::int64_t>(), want.numel());
    }
}

INSTANTIATE_TEST_SUITE_P(Types, Kernels, testing::Values(at::kFloat, at::kBFloat16, at::kHalf),
                         [](const auto& info) { return at::toString(info.param); });

/// Attention is LibTorch's: a suite of its own, whose libraries cannot be looked up under the address sanitizer.
class DeviceAttention : public Kernels {};

// Rows of several documents and of one, with filling, which trains nothing.
TEST_P(DeviceAttention, StaysInsideDocumentsAndSoDoesItsGradient) {
  const AttentionShape shape{4, 2, 16};
  const std::vector<std::vector<std::int32_t>> rows = {{0, 0, 0, 1, 1, 2, 2, 2, 2, 2, 3, 3},
                                                       {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
                                                       {0, 1, 1, 1, 1, 2, 2, -1, -1, -1, -1, -1}};
  Batch batch;
  batch.documents = at::zeros({3, 12}, at::kInt);
  batch.positions = at::zeros({3, 12}, at::kLong);
  for (std::int64_t b = 0; b < 3; ++b)
    for (std::int64_t t = 0; t < 12; ++t) {
      batch.documents[b][t] = rows[b][t];
      if (t > 0 && rows[b][t] == rows[b][t - 1]) batch.positions[b][t] = batch.positions[b][t - 1] + 1;
    }
  const at::Tensor counts = (batch.documents >= 0).to(at::kDouble).unsqueeze(2);
  const at::Tensor qkv = values({3, 12, shape.qkv_width()}), dy = values({3, 12, 64}, 0.4) * counts;
  const auto run = [&](const at::Tensor& in, const Batch& on, const at::Tensor& gradient, double share = 0) {
    Rotary rotary(16, 10000, std::nullopt);
    const at::Tensor leaf = in.clone().set_requires_grad(true),
                     y = attention(leaf, shape, rotary, on, {share, 7, 3, 2});
    y.backward(gradient);
    return std::pair(y.detach() * counts.to(y.options()), leaf.grad());
  };
  const auto [want, want_gradient] = run(qkv, batch, dy);
  const auto [dropped, dropped_gradient] = run(qkv, batch, dy, 0.3);
  batch.ids = batch.documents.to(at::kLong);
  const Batch there = to_device(batch, gpu, GetParam());
  EXPECT_EQ(there.spans.defined(), GetParam() != at::kFloat);
  EXPECT_EQ(there.bias.defined(), GetParam() == at::kFloat);
  const auto [got, got_gradient] = run(up(qkv), there, up(dy));
  expect_near(got, want, "heads");
  expect_near(got_gradient, want_gradient, "gradient");
  const auto [own, own_gradient] = run(up(qkv), there, up(dy), 0.3);
  expect_near(own, dropped, "heads with dropout");
  expect_near(own_gradient, dropped_gradient, "gradient with dropout");
}

// A rank without rows.
TEST_P(DeviceAttention, TakesNoRows) {
  Rotary rotary(16, 10000, std::nullopt);
  const at::Tensor qkv =
      at::zeros({0, 12, 128}, at::TensorOptions().dtype(GetParam()).device(gpu)).set_requires_grad(true);
  const at::Tensor y = attention(qkv, {4, 2, 16}, rotary, {});
  EXPECT_EQ(y.sizes(), at::IntArrayRef({0, 12, 64}));
  y.sum().backward();
  EXPECT_EQ(qkv.grad().sizes(), qkv.sizes());
}

INSTANTIATE_TEST_SUITE_P(Types, DeviceAttention, testing::Values(at::kFloat, at::kBFloat16, at::kHalf),
                         [](const auto& info) { return at::toString(info.param); });

// A rank that writes a part of its states brings that part alone from the GPU.
TEST(StatesOnDevice, AreReadByTheRangeThatIsWanted) {
  if (at::detail::getCUDAHooks().deviceCount() == 0) GTEST_SKIP() << "no GPU";
  ModelConfig config = preset_config("llama-tiny");
  config.vocab_size = 40000;  // states of the embedding are several chunks
  const Model model = make_model(config);
  StagedCommunicator alone(std::make_unique<FakeCommunicator>(0, 1), gpu);
  EngineOptions options;
  options.plan = ShardPlan::for_stage(0);
  options.device = gpu;
  Mesh mesh(alone);
  Engine engine(chain_of(model), mesh, options);
  ParameterGroup& group = *engine.groups().front();
  const std::int64_t held = group.states().front()->numel(), wanted = held - 1000;
  std::int64_t visited = 0;
  bool covered = false;
  group.visit_states(*group.states().front(), StateAccess::read, {wanted, wanted + 10}, [&](const StateChunk& chunk) {
    visited += chunk.end - chunk.begin;
    covered |= chunk.begin <= wanted && wanted + 10 <= chunk.end;
  });
  EXPECT_TRUE(covered);
  EXPECT_LT(visited, held / 2);
}

}  // namespace
}  // namespace zero
