// Losses by chunks of logits against autograd of LibTorch on whole logits.
#include "models/loss/loss.h"

#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "models/loss/cross_entropy_loss.h"
#include "models/loss/dpo_loss.h"
#include "models/loss/kto_loss.h"
#include "models/loss/orpo_loss.h"
#include "models/loss/sequence_loss.h"
#include "models/loss_terms.h"
#include "models/nn/head.h"
#include "tests/unit/models/small_model.h"

namespace zero::test {
namespace loss_test {

constexpr std::int64_t rows = 4, length = 20, hidden = 8, vocabulary = 33;

/// A head and a batch of ragged rows; the last one trains nothing.
struct Bench {
  at::Tensor x, norm, output;
  Batch batch;

  explicit Bench(at::ScalarType type = at::kDouble)
      : x(random({rows, length, hidden}, 1, type)),
        norm(random({hidden}, 2, type)),
        output(random({vocabulary, hidden}, 3, type)) {
    batch.targets = at::randint(vocabulary, {rows, length}, at::make_generator<at::CPUGeneratorImpl>(4), at::kLong);
    batch.targets.select(0, 0).narrow(0, 0, 5).fill_(ignored_target);
    batch.targets.select(0, 1).narrow(0, 13, 7).fill_(ignored_target);
    batch.targets.select(0, 3).fill_(ignored_target);
  }
  void weigh() {
    batch.token_weights = random({rows, length}, 5, at::kFloat).abs();
    batch.row_weights = at::tensor({0.5f, 2.0f, 1.0f, 3.0f});
  }
  /// Two documents a row, the second from token 9 on.
  void pair() {
    batch.documents = (at::arange(length) >= 9).to(at::kInt).expand({rows, length}).contiguous();
    batch.named["reference"] = random({rows, 2}, 6, at::kFloat);
  }
};

struct Found {
  at::Tensor loss;
  std::vector<at::Tensor> grads;  // of x, norm, output
  LossFigures figures;
};

constexpr double brought = 0.125;  // the gradient of the loss

/// Computes the loss by the head, which gets `told` as the gradient of the loss.
Found by_chunks(const Bench& bench, const Loss& loss, std::int64_t bytes, double told = brought) {
  const at::Tensor x = bench.x.clone().set_requires_grad(true), norm = bench.norm.clone().set_requires_grad(true),
                   output = bench.output.clone().set_requires_grad(true);
  LossTerms terms;
  ForwardContext context;
  context.batch = &bench.batch;
  context.loss = &loss;
  context.terms = &terms;
  context.logits_bytes = bytes;
  context.gradient_scale = told;
  const at::Tensor value = head_loss(x, {norm, output, 1e-5}, context);
  return {value.detach(), torch::autograd::grad({value * brought}, {x, norm, output}), terms.figures()};
}

using Whole = std::function<at::Tensor(const at::Tensor& log_probabilities)>;

/// By autograd: `whole` makes the loss of log p [rows, length] of the targets, 0 where none is trained.
Found by_autograd(const Bench& bench, const Whole& whole) {
  const at::Tensor x = bench.x.to(at::kDouble).set_requires_grad(true),
                   norm = bench.norm.to(at::kDouble).set_requires_grad(true),
                   output = bench.output.to(at::kDouble).set_requires_grad(true);
  const at::Tensor normed = x * (x.square().mean(-1, true) + 1e-5).rsqrt() * norm;
  const at::Tensor p = at::matmul(normed, output.t()).log_softmax(-1);
  const at::Tensor& targets = bench.batch.targets;
  const at::Tensor chosen = p.gather(2, targets.clamp_min(0).unsqueeze(2)).squeeze(2);
  const at::Tensor value = whole(chosen.masked_fill(targets == ignored_target, 0));
  return {value.detach(), torch::autograd::grad({value * brought}, {x, norm, output}), {}};
}

constexpr std::int64_t chunk_sizes[] = {1, 40 * vocabulary * 8, default_logits_bytes};  // bytes: 16 rows, 40, all

void expect_equal(const Bench& bench, const Loss& loss, const Whole& whole, double allowed = 1e-12) {
  const Found right = by_autograd(bench, whole);
  for (const std::int64_t bytes : chunk_sizes)
    for (const double told : {brought, 1.0}) {
      const Found mine = by_chunks(bench, loss, bytes, told);
      EXPECT_LT(deviation(mine.loss, right.loss), allowed) << bytes;
      for (std::size_t i = 0; i < 3; ++i)
        EXPECT_LT(deviation(mine.grads[i], right.grads[i]), allowed) << i << " " << bytes;
      EXPECT_EQ(mine.grads[0].select(0, 3).abs().max().item<double>(), 0) << "of a row that trains nothing";
    }
}

TEST(CrossEntropyLoss, WeighsTokensAndRows) {
  Bench bench;
  expect_equal(bench, cross_entropy_loss(), [](const at::Tensor& p) { return -p.sum(); });
  bench.weigh();
  const Batch& batch = bench.batch;
  const auto whole = [&](const at::Tensor& p) {
    return -(p * batch.token_weights * batch.row_weights.unsqueeze(1)).sum();
  };
  expect_equal(bench, cross_entropy_loss(), whole, 1e-7);  // weights are fp32 and so are their products
  bench.batch.row_weights = at::Tensor();
  expect_equal(bench, cross_entropy_loss(), [&](const at::Tensor& p) { return -(p * batch.token_weights).sum(); });
  bench.batch.token_weights = at::Tensor();
  bench.batch.row_weights = at::tensor({0.5f, 2.0f, 1.0f, 3.0f});
  expect_equal(bench, cross_entropy_loss(),
               [&](const at::Tensor& p) { return -(p * batch.row_weights.unsqueeze(1)).sum(); });
}

TEST(SequenceLoss, IsTheLikelihoodOfWholeSequences) {
  const SequenceLoss loss;
  Bench bench;
  expect_equal(bench, loss, [](const at::Tensor& p) { return -p.sum(); });
  bench.weigh();
  expect_equal(bench, loss, [&](const at::Tensor& p) {
    return -((p * bench.batch.token_weights).sum(1) * bench.batch.row_weights).sum();
  });
}

/// -log sigmoid(beta (log p0 - r0 - log p1 + r1)): a row holds a chosen sequence and a rejected one.
class Preference final : public SequenceLoss {
 public:
  Preference() : SequenceLoss(2) {}
  std::string name() const override { return "preference"; }
  std::vector<std::string> needs() const override { return {"reference"}; }
  double count(const RowCounts&) const override { return 1; }
  std::vector<std::string> figures() const override { return {"margin", "right"}; }
  static constexpr double beta = 0.1;

 protected:
  SequenceOutcome outcome(const at::Tensor& p, const Batch& batch) const override {
    const at::Tensor reward = (p - named_tensor(batch, "reference")) * beta;
    const at::Tensor margin = reward.select(1, 0) - reward.select(1, 1);
    const at::Tensor slope = at::sigmoid(-margin) * -beta;
    return {-at::log_sigmoid(margin).sum(), at::stack({slope, -slope}, 1),
            at::stack({margin.sum(), (margin > 0).to(margin.scalar_type()).sum()})};
  }
};

at::Tensor preference_of(const Bench& bench, const at::Tensor& p) {
  const at::Tensor sums = at::stack({p.narrow(1, 0, 9).sum(1), p.narrow(1, 9, length - 9).sum(1)}, 1);
  const at::Tensor reward = (sums - bench.batch.named.at("reference")) * Preference::beta;
  return -at::log_sigmoid(reward.select(1, 0) - reward.select(1, 1)).sum();
}

TEST(SequenceLoss, MayDependOnAllSequencesOfARow) {
  Bench bench;
  bench.pair();
  expect_equal(bench, Preference(), [&](const at::Tensor& p) { return preference_of(bench, p); });
  const LossFigures figures = by_chunks(bench, Preference(), 1).figures;
  ASSERT_EQ(figures.size(), 2u);
  EXPECT_EQ(figures[0].first, "margin");
  EXPECT_NEAR(figures[1].second.item<double>(), 2, 2);
  Bench without;
  EXPECT_THROW(by_chunks(without, Preference(), 1), Error) << "the batch names no reference";
}

/// log p of both documents and their numbers of trained tokens, [rows, 2].
struct Answers {
  at::Tensor p, tokens;

  Answers(const Bench& bench, const at::Tensor& tokens_p, const at::Tensor& answers = at::ones({rows, length})) {
    const auto both = [&](const at::Tensor& each) {
      return at::stack({each.narrow(1, 0, 9).sum(1), each.narrow(1, 9, length - 9).sum(1)}, 1);
    };
    p = both(tokens_p * answers);
    tokens = both((bench.batch.targets != ignored_target) * answers).clamp_min(1);
  }
};

TEST(DpoLoss, TermsAreTheirFormulas) {
  using at::log_sigmoid, at::sigmoid, at::square;
  constexpr double beta = 0.3, s = 0.1;
  struct Case {
    const char* name;
    std::function<at::Tensor(const at::Tensor& c, const at::Tensor& r, const at::Tensor& mc, const at::Tensor& mr)>
        value;
  };
  using T = const at::Tensor&;
  const Case cases[] = {
      {"sigmoid",
       [](T c, T r, T, T) { return -(1 - s) * log_sigmoid(beta * (c - r)) - s * log_sigmoid(beta * (r - c)); }},
      {"robust",
       [](T c, T r, T, T) {
         return ((s - 1) * log_sigmoid(beta * (c - r)) + s * log_sigmoid(beta * (r - c))) / (1 - 2 * s);
       }},
      {"sigmoid_norm",
       [](T, T, T c, T r) { return -(1 - s) * log_sigmoid(beta * (c - r)) - s * log_sigmoid(beta * (r - c)); }},
      {"hinge", [](T c, T r, T, T) { return (1 - beta * (c - r)).clamp_min(0); }},
      {"ipo", [](T, T, T c, T r) { return square(c - r - 0.5 / beta); }},
      {"exo_pair",
       [](T c, T r, T, T) {
         const at::Tensor q = sigmoid(beta * (c - r));
         return q * (q.log() - std::log(1 - s)) + (1 - q) * ((1 - q).log() - std::log(s));
       }},
      {"nca_pair",
       [](T c, T r, T, T) { return -log_sigmoid(beta * c) - log_sigmoid(-beta * c) / 2 - log_sigmoid(-beta * r) / 2; }},
      {"bco_pair", [](T c, T r, T, T) { return -log_sigmoid(beta * c) - log_sigmoid(-beta * r); }},
      {"sppo_hard", [](T c, T r, T, T) { return square(c - 0.5 / beta) + square(r + 0.5 / beta); }},
      {"apo_zero", [](T c, T r, T, T) { return 1 - sigmoid(beta * c) + sigmoid(beta * r); }},
      {"apo_down", [](T c, T r, T, T) { return sigmoid(beta * c) + 1 - sigmoid(beta * (c - r)); }}};
  std::vector<std::string> names;
  Bench bench;
  bench.pair();
  bench.batch.named[reference_name] = bench.batch.named["reference"];
  bench.batch.row_weights = at::tensor({0.5f, 2.0f, 1.0f, 3.0f});
  for (const Case& one : cases) {
    names.emplace_back(one.name);
    expect_equal(
        bench, *dpo_loss({{{one.name, 2.0}}, beta, s}),
        [&](const at::Tensor& tokens_p) {
          const Answers both(bench, tokens_p);
          const at::Tensor ratio = both.p - bench.batch.named["reference"], mean = ratio / both.tokens;
          return (bench.batch.row_weights * 2 *
                  one.value(ratio.select(1, 0), ratio.select(1, 1), mean.select(1, 0), mean.select(1, 1)))
              .sum();
        },
        1e-7);
  }
  names.emplace_back("sft");
  EXPECT_EQ(names, dpo_terms());
  EXPECT_THROW(dpo_loss({{{"dpo", 1.0}}}), InputError);
}

TEST(DpoLoss, AddsTheLikelihoodOfChosenAnswers) {
  Bench bench;
  bench.pair();
  bench.batch.named[reference_name] = bench.batch.named["reference"];
  bench.batch.named[token_share_name] = at::full({rows, 1}, 0.25);
  const auto loss = dpo_loss({{{"hinge", 1.0}, {"sft", 3.0}}, 0.1, 0});
  EXPECT_TRUE(loss->averages_tokens());
  expect_equal(
      bench, *loss,
      [&](const at::Tensor& tokens_p) {
        const Answers both(bench, tokens_p);
        const at::Tensor ratio = both.p - bench.batch.named["reference"];
        return ((1 - 0.1 * (ratio.select(1, 0) - ratio.select(1, 1))).clamp_min(0) - 0.75 * both.p.select(1, 0)).sum();
      },
      1e-7);
}

// Prompts count in the likelihood, but not in the odds.
TEST(OrpoLoss, IsItsFormula) {
  Bench bench;
  bench.pair();
  bench.batch.targets.select(0, 3).fill_(5);
  const at::Tensor answers = at::ones({rows, length});
  answers.narrow(1, 0, 7).zero_();
  answers.narrow(1, 9, 3).zero_();
  bench.batch.named[answers_name] = answers;
  bench.batch.named[token_share_name] = at::full({rows, 1}, 0.25);
  const Found right = by_autograd(bench, [&](const at::Tensor& tokens_p) {
    const Answers both(bench, tokens_p, answers);
    const at::Tensor mean = both.p / both.tokens, odds = mean - (1 - mean.exp()).log();
    return (-0.2 * at::log_sigmoid(odds.select(1, 0) - odds.select(1, 1)) - 0.25 * tokens_p.narrow(1, 0, 9).sum(1))
        .sum();
  });
  for (const std::int64_t bytes : chunk_sizes) {
    const Found mine = by_chunks(bench, *orpo_loss(0.2), bytes);
    EXPECT_LT(deviation(mine.loss, right.loss), 1e-7);
    for (std::size_t i = 0; i < 3; ++i) EXPECT_LT(deviation(mine.grads[i], right.grads[i]), 1e-7) << i;
  }
}

TEST(OrpoLoss, StaysFiniteForACertainAnswer) {
  Bench bench;
  bench.pair();
  bench.batch.targets.fill_(ignored_target);  // an answer without tokens has log p = 0
  bench.batch.named[answers_name] = at::ones({rows, length});
  bench.batch.named[token_share_name] = at::ones({rows, 1});
  EXPECT_TRUE(std::isfinite(by_chunks(bench, *orpo_loss(0.2), 1).loss.item<double>()));
}

TEST(KtoLoss, IsItsFormula) {
  Bench bench;
  bench.batch.named[reference_name] = random({rows, 1}, 7, at::kFloat);
  bench.batch.named[desirable_name] = at::tensor({1.0f, 0.0f, 1.0f, 0.0f}).unsqueeze(1);
  for (const double divergence : {0.0, 0.7}) {
    if (divergence > 0) bench.batch.named[divergence_name] = at::full({rows, 1}, divergence);
    const auto loss = kto_loss({.beta = 0.3, .desirable_weight = 2, .undesirable_weight = 0.5});
    expect_equal(
        bench, *loss,
        [&](const at::Tensor& tokens_p) {
          const at::Tensor r = tokens_p.sum(1, true) - bench.batch.named[reference_name],
                           d = bench.batch.named[desirable_name];
          return (d * 2 * (1 - at::sigmoid(0.3 * (r - divergence))) +
                  (1 - d) * 0.5 * (1 - at::sigmoid(0.3 * (divergence - r))))
              .sum();
        },
        1e-7);
    LossMeans means;
    for (const auto& [name, sum] : by_chunks(bench, *loss, 1).figures) means[name] = sum.item<double>() / rows;
    const double rejected = means.at("rewards/rejected") * 2;
    loss->conclude(means);
    EXPECT_NEAR(means.at("rewards/rejected"), rejected, 1e-12) << "half of the answers";
    EXPECT_NEAR(means.at("kl"), divergence, 1e-6);
    EXPECT_EQ(means.at("desirable"), 0.5);
  }
}

TEST(PairLosses, ReportFiguresUnderTrlsNames) {
  Bench bench;
  bench.pair();
  bench.batch.named[reference_name] = bench.batch.named["reference"];
  const LossFigures figures = by_chunks(bench, *dpo_loss({}), 1).figures;
  std::map<std::string, double> named;
  for (const auto& [name, sum] : figures) named[name] = sum.item<double>();
  EXPECT_NEAR(named.at("rewards/margins"), named.at("rewards/chosen") - named.at("rewards/rejected"), 1e-9);
  EXPECT_EQ(named.count("logps/chosen"), 1u);
  EXPECT_GE(named.at("rewards/accuracies"), 0);
  EXPECT_LE(named.at("rewards/accuracies"), rows);
}

TEST(SequenceLoss, RoundsInBfloatAsItsTypeDoes) {
  Bench bench(at::kBFloat16);
  bench.batch.row_weights = at::tensor({0.5f, 2.0f, 1.0f, 3.0f});
  expect_equal(
      bench, SequenceLoss(), [&](const at::Tensor& p) { return -(p.sum(1) * bench.batch.row_weights).sum(); }, 3e-2);
  bench.pair();
  expect_equal(
      bench, Preference(), [&](const at::Tensor& p) { return preference_of(bench, p); }, 3e-2);
}

// One look and two come to the same where the loss is the same.
TEST(SequenceLoss, AgreesWithTheCrossEntropyOfRows) {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    Bench bench(type);
    bench.batch.row_weights = at::tensor({0.5f, 2.0f, 1.0f, 3.0f});
    for (const std::int64_t bytes : chunk_sizes) {
      const Found once = by_chunks(bench, cross_entropy_loss(), bytes), twice = by_chunks(bench, SequenceLoss(), bytes);
      EXPECT_LT(deviation(twice.loss, once.loss), 2e-6);
      for (std::size_t i = 0; i < 3; ++i) EXPECT_TRUE(twice.grads[i].equal(once.grads[i])) << i << " " << bytes;
    }
  }
}

TEST(Losses, OfABatchWithoutRowsAreZeroAndHaveTheirFigures) {
  Bench bench;
  bench.x = bench.x.narrow(0, 0, 0);
  bench.batch.targets = bench.batch.targets.narrow(0, 0, 0);
  const Preference preference;
  for (const Loss* loss : {&cross_entropy_loss(), static_cast<const Loss*>(&preference)}) {
    const Found found = by_chunks(bench, *loss, 1);
    EXPECT_EQ(found.loss.item<double>(), 0);
    EXPECT_EQ(found.figures.size(), loss->figures().size());
    EXPECT_EQ(found.grads[2].abs().max().item<double>(), 0);
  }
}

TEST(Losses, HaveTheSameValueWithoutGradients) {
  Bench bench;
  bench.weigh();
  bench.pair();
  const Preference preference;
  const SequenceLoss sequences;
  for (const Loss* loss :
       {&cross_entropy_loss(), static_cast<const Loss*>(&sequences), static_cast<const Loss*>(&preference)})
    for (const std::int64_t bytes : chunk_sizes) {
      const at::Tensor value = by_chunks(bench, *loss, bytes).loss;
      const at::NoGradGuard no_grad;
      ForwardContext context;
      context.batch = &bench.batch;
      context.loss = loss;
      context.logits_bytes = bytes;
      EXPECT_EQ(head_loss(bench.x, {bench.norm, bench.output, 1e-5}, context).item<double>(), value.item<double>());
    }
}

TEST(Losses, OfTokensAreThoseThatSequencesAreMadeOf) {
  Bench bench;
  ForwardContext context;
  context.batch = &bench.batch;
  context.logits_bytes = 1;
  const at::Tensor each = head_token_losses(bench.x, {bench.norm, bench.output, 1e-5}, context);
  EXPECT_EQ(each.sizes(), bench.batch.targets.sizes());
  EXPECT_LT(deviation(each.sum(), by_chunks(bench, cross_entropy_loss(), 1).loss), 1e-12);
  EXPECT_EQ(each.masked_select(bench.batch.targets == ignored_target).abs().max().item<double>(), 0);
  const at::Tensor p = SequenceLoss().log_probabilities(each, bench.batch);
  EXPECT_LT(deviation(p, -each.sum(1, true)), 1e-12);
}

TEST(Losses, CountWhatTheyDivideBy) {
  const RowCounts row{7, 9};
  EXPECT_EQ(cross_entropy_loss().count(row), 7);
  EXPECT_EQ(SequenceLoss().count(row), 1);
  EXPECT_EQ(SequenceLoss(2).count(row), 2);
  EXPECT_EQ(Preference().count(row), 1);
}

}  // namespace loss_test
}  // namespace zero::test
