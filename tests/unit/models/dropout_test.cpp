// Dropout of embeddings, probabilities and residuals: shares and scales, masks of their own for every place, and the
// gradients of LibTorch's autograd where the same masks are applied explicitly.
#include <ATen/ATen.h>
#include <ATen/OpMathType.h>
#include <gtest/gtest.h>

#include <cmath>

#include "models/nn/drop.h"
#include "models/ops/attention.h"
#include "tests/unit/models/drawn_masks.h"
#include "tests/unit/models/small_model.h"

namespace zero::test {
namespace dropout_test {

constexpr at::ScalarType all_types[] = {at::kDouble, at::kFloat, at::kBFloat16, at::kHalf};

TEST(Drop, DropsItsShareAndScalesTheRestWithOneRounding) {
  for (const at::ScalarType type : all_types)
    for (const double share : {0.1, 0.5, 0.9}) {
      const at::Tensor x = random({3, 40, 70}, 1, type).set_requires_grad(true), dy = random({3, 40, 70}, 2, type);
      const Dropout dropout{.share = share, .seed = 7, .first_sample = 5, .sequence = 40};
      const at::Tensor y = drop(x, dropout), mask = dropout_mask(dropout, x.detach().view({120, 70})).view_as(x);
      const at::Tensor kept = mask.ne(0);
      EXPECT_NEAR(kept.to(at::kDouble).mean().item<double>(), 1 - share, 0.02) << type;  // of 8400 elements
      const auto scaled = [&](const at::Tensor& t) {
        return t.detach().to(at::toOpMathType(type)).mul(1 / (1 - share)).mul(kept).to(type);
      };
      EXPECT_TRUE(y.equal(scaled(x))) << type << ", " << share;
      EXPECT_TRUE(torch::autograd::grad({y}, {x}, {dy})[0].equal(scaled(dy))) << type << ", " << share;
    }
  const at::Tensor x = random({2, 3}, 1);
  EXPECT_TRUE(drop(x, {}).is_same(x));
}

/// GPT-2's parts: layer norms, biases, learned positions, and weights [in, out].
ModelConfig gpt2_config() {
  ModelConfig config = small_config();
  config.model_type = "gpt2";
  config.num_key_value_heads = config.num_attention_heads;
  config.head_dim = 8;
  config.norm = NormKind::layer;
  config.activation = Activation::gelu_tanh;
  config.gated = false;
  config.learned_positions = config.qkv_bias = config.output_bias = config.mlp_bias = true;
  config.tie_word_embeddings = true;
  config.layers.assign(2, {LayerAttention::Rope::none, 0, 0});
  config.dropout = {0.2, 0.3, 0.4};
  return config;
}

Batch batch_of_two() {
  Batch batch;
  batch.ids = at::arange(20, at::kLong).mul(7).remainder(61).view({2, 10});
  batch.targets = batch.ids.roll(1, 1);
  return batch;
}

/// A pass in training, with the masks that it drew.
struct Pass {
  Pass(Model& model, std::uint64_t step, bool training = true, std::int64_t first_sample = 4) {
    const Batch batch = batch_of_two();
    ForwardContext context;
    context.batch = &batch;
    context.training = training;
    context.seed = step;
    context.first_sample = first_sample;
    DrawnMasks drawn;
    loss = model.units.back()->forward(run_to_head(model, context), context);
    forward = drawn.take();
    gradients = test::gradients(model, loss);
    backward = drawn.take();
  }
  at::Tensor loss;
  std::vector<at::Tensor> forward, backward;
  std::map<std::string, at::Tensor> gradients;
};

// In the order of a pass: the embedding, then for each block eight of attention (two rows, four heads) and two of the
// residual stream.
constexpr std::size_t masks_of_block = 8 + 2;

std::map<std::string, at::Tensor> leaves_of(const Model& model) {
  std::map<std::string, at::Tensor> leaves;
  for (const auto& unit : model.units)
    for (const Parameter& parameter : unit->parameters())
      leaves[parameter.parts.front().name] = parameter.tensor.detach().clone().set_requires_grad(true);
  return leaves;
}

/// The loss of GPT-2 by LibTorch's own operations.
at::Tensor plain_loss(const std::map<std::string, at::Tensor>& weights, const Batch& batch,
                      const std::vector<at::Tensor>& masks) {
  const auto weight = [&](const std::string& name) { return weights.at("transformer." + name); };
  const auto linear = [&](const at::Tensor& x, const std::string& name) {
    return at::matmul(x, weight(name + ".weight")) + weight(name + ".bias");
  };
  const auto normed = [&](const at::Tensor& x, const std::string& name) {
    return at::layer_norm(x, {32}, weight(name + ".weight"), weight(name + ".bias"), 1e-5);
  };
  const at::Tensor unseen = at::ones({10, 10}, at::kBool).triu(1);
  auto mask = masks.begin();
  const auto dropped = [&](const at::Tensor& x, double share) {
    return x * (mask++)->ne(0).view_as(x).to(at::kDouble) / (1 - share);  // the mask's own scale is fp32
  };
  at::Tensor x = weight("wte.weight").index_select(0, batch.ids.view({-1})).view({2, 10, 32}) +
                 weight("wpe.weight").narrow(0, 0, 10);
  x = dropped(x, 0.2);
  for (const std::string block : {"h.0.", "h.1."}) {
    const auto heads = linear(normed(x, block + "ln_1"), block + "attn.c_attn").view({2, 10, 3, 4, 8}).unbind(2);
    const auto of = [&](int i) { return heads[std::size_t(i)].transpose(1, 2); };
    at::Tensor shares = (at::matmul(of(0), of(1).transpose(2, 3)) / std::sqrt(8.0)).masked_fill(unseen, -INFINITY);
    shares = shares.softmax(-1) * at::stack(std::vector<at::Tensor>(mask, mask + 8)).view({2, 4, 10, 10});
    mask += 8;
    at::Tensor added = linear(at::matmul(shares, of(2)).transpose(1, 2).reshape({2, 10, 32}), block + "attn.c_proj");
    x = x + dropped(added, 0.4);
    added = linear(at::gelu(linear(normed(x, block + "ln_2"), block + "mlp.c_fc"), "tanh"), block + "mlp.c_proj");
    x = x + dropped(added, 0.4);
  }
  const at::Tensor logits = at::matmul(normed(x, "ln_f"), weight("wte.weight").t());
  return at::cross_entropy_loss(logits.view({20, -1}), batch.targets.reshape({-1}), {}, at::Reduction::Sum);
}

TEST(ModelDropout, HasTheGradientsOfAutogradWithTheSameMasks) {
  Model model = random_model(gpt2_config());
  const Pass pass(model, 3);
  ASSERT_EQ(pass.forward.size(), 1 + 2 * masks_of_block);
  const auto leaves = leaves_of(model);
  const at::Tensor want = plain_loss(leaves, batch_of_two(), pass.forward);
  EXPECT_LT(deviation(pass.loss, want), 1e-12);
  for (const auto& [name, leaf] : leaves)
    EXPECT_LT(deviation(pass.gradients.at(name), torch::autograd::grad({want}, {leaf}, {}, true)[0]), 1e-9) << name;
}

TEST(ModelDropout, DrawsEveryPlaceAnewAndTheSameInBackward) {
  ModelConfig config = gpt2_config();
  config.dropout = {0.5, 0.5, 0.5};
  Model model = random_model(config);
  const Pass first(model, 1), second(model, 2), others(model, 1, true, 6);
  ASSERT_EQ(first.forward.size(), 1 + 2 * masks_of_block);
  ASSERT_EQ(first.backward.size(), first.forward.size());
  for (std::size_t i = 0; i < first.forward.size(); ++i) {
    const at::Tensor& mask = first.forward[i];
    const double apart = mask.numel() > 100 ? 0.1 : 0.25;  // 640 or 100 numbers
    for (std::size_t j = 0; j < i; ++j) {
      if (mask.sizes() != first.forward[j].sizes()) continue;
      EXPECT_NEAR(agreement(mask, first.forward[j]), 0.5, apart) << "draws " << j << " and " << i;
    }
    EXPECT_NEAR(agreement(mask, second.forward[i]), 0.5, apart) << "the next step's draw " << i;
    EXPECT_NEAR(agreement(mask, others.forward[i]), 0.5, apart) << "draw " << i << " of other samples";
    int same = 0;
    for (const at::Tensor& again : first.backward) same += agreement(mask, again) == 1;
    EXPECT_EQ(same, 1) << "draw " << i;
  }
}

TEST(ModelDropout, IsOffOutsideTraining) {
  ModelConfig config = gpt2_config();
  Model model = random_model(config);
  config.dropout = {};
  Model without = random_model(config);
  const Pass evaluated(model, 1, false), trained(without, 1);
  EXPECT_TRUE(evaluated.forward.empty());
  EXPECT_TRUE(evaluated.loss.equal(trained.loss));
  EXPECT_FALSE(Pass(model, 1).loss.equal(trained.loss));
}

TEST(ModelDropout, OfARunReplacesThatOfTheModel) {
  ModelConfig config = gpt2_config();
  config.run_dropout = DropoutShares{.residual = 0.5};
  Model model = random_model(config);
  EXPECT_EQ(Pass(model, 1).forward.size(), 4u);
}

struct AttentionCase {
  AttentionShape shape;
  std::int64_t length;
  bool packed;
};

Batch documents_of(std::int64_t length) {
  Batch batch;
  batch.documents =
      at::arange(length, at::kInt).div(length / 3 + 1, "floor").to(at::kInt).expand({2, length}).contiguous();
  batch.positions = at::arange(length, at::kLong).remainder(length / 3 + 1).expand({2, length}).contiguous();
  return batch;
}

/// Attention by LibTorch's operations, with a mask from dropout_mask() for each row and head.
at::Tensor plain_attention(const AttentionCase& c, const at::Tensor& qkv, const Batch& batch,
                           const HeadDropout& drops) {
  const auto& [heads, kv_heads, head_dim, window, scale] = c.shape;
  Rotary rotary(head_dim, 10000, {});
  const Rotary::Table table = rotary.table(c.length, at::kDouble, at::kCPU);
  const auto parts = qkv.view({2, c.length, -1, head_dim}).split_with_sizes({heads, kv_heads, kv_heads}, 2);
  const auto spread = [&](const at::Tensor& t) { return t.repeat_interleave(heads / kv_heads, 2).transpose(1, 2); };
  const at::Tensor q = rotate(parts[0], table, batch.positions).transpose(1, 2),
                   k = spread(rotate(parts[1], table, batch.positions)), v = spread(parts[2]);
  at::Tensor sees = c.packed ? document_mask(batch.documents) : at::ones({c.length, c.length}, at::kBool).tril();
  if (const at::Tensor near = window_mask(c.length, window, at::kCPU); near.defined()) sees = sees & near;
  std::vector<at::Tensor> masks;
  for (int row = 0; row < 2; ++row)
    for (std::int64_t head = 0; head < heads; ++head)
      masks.push_back(dropout_mask(drops.of(row, head, c.length), at::empty({c.length, c.length}, at::kDouble)));
  const at::Tensor scores = at::matmul(q, k.transpose(2, 3)) / std::sqrt(double(head_dim));
  const at::Tensor shares = scores.masked_fill(sees.logical_not(), -INFINITY).softmax(-1);
  const at::Tensor kept = shares * at::stack(masks).view({2, heads, c.length, c.length});
  return at::matmul(kept, v).transpose(1, 2).reshape({2, c.length, heads * head_dim});
}

// Kernels draw their own numbers, in blocks of 64 tokens.
TEST(AttentionDropout, OfEveryTypeIsThatOfAutogradWithTheSameMasks) {
  const AttentionCase cases[] = {{{4, 2, 16}, 9, false},    {{2, 1, 64}, 64, false},     {{3, 1, 32}, 65, false},
                                 {{4, 2, 48}, 200, true},   {{2, 1, 64, 70}, 260, true}, {{2, 2, 8}, 30, true},
                                 {{2, 2, 22, 7}, 57, true}, {{1, 1, 16}, 1, false}};
  const HeadDropout drops{0.3, 0x9E3779B97F4A7C15u, (std::int64_t{1} << 31) + 3, 5};
  for (const at::ScalarType type : all_types)
    for (const AttentionCase& c : cases) {
      SCOPED_TRACE(::testing::Message() << type << ", " << c.shape.head_dim << " x " << c.length);
      const at::Tensor leaf = random({2, c.length, c.shape.qkv_width()}, 1, type).set_requires_grad(true),
                       dy = random({2, c.length, c.shape.heads * c.shape.head_dim}, 2, type);
      const at::Tensor exact = leaf.detach().to(at::kDouble).set_requires_grad(true);
      const Batch batch = c.packed ? documents_of(c.length) : Batch{};
      Rotary rotary(c.shape.head_dim, 10000, {});
      const at::Tensor y = attention(leaf.clone(), c.shape, rotary, batch, drops),
                       want = plain_attention(c, exact, batch, drops);
      const double limit = type == at::kDouble ? 1e-12 : type == at::kFloat ? 5e-6 : 2e-2;
      EXPECT_LT(deviation(y, want), limit);
      EXPECT_LT(deviation(torch::autograd::grad({y}, {leaf}, {dy})[0],
                          torch::autograd::grad({want}, {exact}, {dy.to(at::kDouble)})[0]),
                limit);
    }
}

// Rows of a batch, and heads of a rank, draw what they draw in the whole.
TEST(AttentionDropout, OfAPartIsThatOfTheWhole) {
  for (const at::ScalarType type : {at::kDouble, at::kFloat, at::kBFloat16}) {
    Rotary rotary(16, 10000, {});
    const HeadDropout drops{0.4, 11, 6, 2};
    const auto run = [&](const at::Tensor& qkv, std::int64_t heads, const HeadDropout& own) {
      return attention(qkv.clone(), {heads, heads, 16}, rotary, {}, own);
    };
    const at::Tensor qkv = random({3, 70, 3 * 4 * 16}, 1, type), whole = run(qkv, 4, drops);
    HeadDropout own = drops;
    own.first_sample += 2;
    EXPECT_LT(deviation(run(qkv.narrow(0, 2, 1), 4, own), whole.narrow(0, 2, 1)), 1e-6);
    own = drops;
    own.first_head += 1;
    const at::Tensor heads = qkv.view({3, 70, 3, 4, 16}).narrow(3, 1, 2).reshape({3, 70, 3 * 2 * 16});
    EXPECT_LT(deviation(run(heads, 2, own), whole.narrow(2, 16, 32)), 1e-6);
    own.first_head += 1;
    EXPECT_GT(deviation(run(heads, 2, own), whole.narrow(2, 16, 32)), 0.1);
  }
}

}  // namespace dropout_test
}  // namespace zero::test
