#include "zero/programs/preference_evaluation.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "models/decoder/decoder.h"
#include "zero/train/divergence.h"
#include "zero/train/run_data.h"
#include "zero/train/training_batches.h"

namespace zero {
namespace {

std::int64_t column_of(const Loss& loss, const std::string& name) {
  const std::vector<std::string> names = loss.figures();
  return std::ranges::find(names, name) - names.begin();
}

/// The sum of a column in the order of the rows, whatever the number of threads.
double sum_of(const at::Tensor& table, std::int64_t column) {
  const auto numbers = table.accessor<float, 2>();
  double sum = 0;
  for (std::int64_t row = 0; row < table.size(0); ++row) sum += double(numbers[row][column]);
  return sum;
}

}  // namespace

PreferenceEvaluation::PreferenceEvaluation(std::shared_ptr<const RowSource> rows, const PreferenceSource& source)
    : settings_(source.settings),
      source_(std::move(rows)),
      judged_(dynamic_cast<const JudgedRows*>(source_.get())),
      rows_(std::make_shared<ReferenceRows>(source_, judged_ ? 1 : 2)),
      loss_(preference_loss(settings_)) {
  if (judged_ && source.exchanged > 1 && source_->size() > 1)
    mismatched_ = std::make_shared<ReferenceRows>(judged_->mismatched(source.exchanged), 1);
}

bool PreferenceEvaluation::needs_reference() const { return settings_.needs_reference(); }

ValidationLoader PreferenceEvaluation::loader_of(std::shared_ptr<const RowSource> rows, Engine& engine,
                                                 const Loss& loss) const {
  const Communicator& ranks = engine.mesh().ranks();
  return {std::move(rows), ranks.rank(), ranks.size(), /*local_batch_size=*/1, {}, loss};
}

at::Tensor PreferenceEvaluation::log_probabilities(Engine& engine, const ReferenceRows& rows) const {
  const ValidationLoader loader = loader_of(rows.rows(), engine, cross_entropy_loss());
  const at::Tensor values = at::zeros({rows.size(), rows.sequences_of_a_row()}, at::kFloat);
  for (std::int64_t m = 0; m < loader.micro_batches(); ++m) {
    const at::Tensor found = log_probabilities_of(engine, loader.batch(m), rows.sequences_of_a_row());
    if (found.size(0) > 0) values.narrow(0, loader.first_row(m), found.size(0)).copy_(found);
  }
  engine.host().all_reduce(values, {}, {Phase::validate});
  if (!at::isfinite(values).all().item<bool>())
    throw Error(
        "the reference gives log-probabilities that are not finite: its weights are, or become in this precision, "
        "infinite or NaN; try --precision fp32");
  return values;
}

void PreferenceEvaluation::take_reference(Engine& engine) {
  for (const auto& rows : {rows_, mismatched_}) {
    if (!rows) continue;
    const at::Tensor values = log_probabilities(engine, *rows);
    rows->fill({values.const_data_ptr<float>(), values.const_data_ptr<float>() + values.numel()});
  }
  has_reference_ = true;
}

std::optional<double> PreferenceEvaluation::divergence(Engine& engine) const {
  if (!mismatched_ || !has_reference_) return std::nullopt;
  const ValidationLoader loader = loader_of(mismatched_, engine, cross_entropy_loss());
  return divergence_of(engine, {.rows = mismatched_->size(),
                                .micro_batches = loader.micro_batches(),
                                .batch = [&](std::int64_t m) { return loader.batch(m); },
                                .first_row = [&](std::int64_t m) { return loader.first_row(m); }});
}

/// `values`: [rows, 2] of pairs, or [rows, 1] of judged answers. NaN if there are no pairs.
double PreferenceEvaluation::share_of_pairs(const at::Tensor& values) const {
  const auto of = values.accessor<float, 2>();
  std::int64_t pairs = 0, right = 0;
  for (std::int64_t row = 0; row < values.size(0); ++row) {
    if (judged_ && !judged_->is_paired(row)) continue;
    ++pairs;
    right += judged_ ? of[row - 1][0] > of[row][0] : of[row][0] > of[row][1];
  }
  return pairs == 0 ? std::nan("") : double(right) / double(pairs);
}

/// `values` as in share_of_pairs().
NamedFigures PreferenceEvaluation::of_log_p(const at::Tensor& values) const {
  const auto of = values.accessor<float, 2>();
  double sums[2] = {}, counts[2] = {};
  for (std::int64_t row = 0; row < values.size(0); ++row)
    for (std::int64_t s = 0; s < values.size(1); ++s) {
      const std::int64_t side = judged_ ? !judged_->is_desirable(row) : s;
      sums[side] += double(of[row][s]);
      counts[side] += 1;
    }
  NamedFigures figures{{"logps/chosen", sums[0] / counts[0]}, {"logps/rejected", sums[1] / counts[1]}};
  if (const double share = share_of_pairs(values); !std::isnan(share)) figures.emplace_back("logps/accuracies", share);
  return figures;
}

PreferenceFigures PreferenceEvaluation::evaluate(Engine& engine) {
  if (!has_reference_) rows_->fill(std::vector<float>(std::size_t(rows_->size() * rows_->sequences_of_a_row())));
  const std::optional<double> divergence = this->divergence(engine);
  const ValidationLoader loader = loader_of(needs_reference() ? rows_ : source_, engine, *loss_);
  const auto figures = std::ssize(loss_->figures());
  const at::Tensor table = at::zeros({rows_->size(), figures + 1}, at::kFloat);  // the loss comes last
  for (std::int64_t m = 0; m < loader.micro_batches(); ++m) {
    Batch rows = loader.batch(m);
    if (divergence) add_divergence(rows, *divergence);
    const Batch batch = on_device(engine, rows);
    ForwardContext context;
    context.batch = &batch;
    const at::Tensor losses = engine.evaluate(context, token_losses_of);
    if (batch.ids.size(0) == 0) continue;
    const LossVerdict found = loss_->judge(losses, batch);
    table[loader.first_row(m)].copy_(at::cat({found.figures, found.value.reshape(1)}));
  }
  engine.host().all_reduce(table, {}, {Phase::validate});

  PreferenceFigures result{settings_.method, {}, {}, {}, rows_->size(), loader.trained_tokens()};
  NamedFigures means;
  for (std::int64_t f = 0; f < figures; ++f)
    means.emplace_back(loss_->figures()[std::size_t(f)], sum_of(table, f) / loader.denominator());
  const auto columns = [&](const std::string& what) {  // [rows, 2] of pairs, [rows, 1] of judged answers
    const at::Tensor chosen = table.select(1, column_of(*loss_, what + "/chosen")),
                     rejected = table.select(1, column_of(*loss_, what + "/rejected"));
    return judged_ ? (chosen + rejected).unsqueeze(1) : at::stack({chosen, rejected}, 1);
  };
  const NamedFigures log_p = of_log_p(columns("logps"));
  if (needs_reference() && !has_reference_) {
    result.figures = log_p;
    return result;
  }
  result.loss = sum_of(table, figures) / loader.denominator();
  append_figures(result.figures, *loss_, means);
  if (const double share = share_of_pairs(columns("rewards")); judged_ && !std::isnan(share))
    result.figures.emplace_back("rewards/accuracies", share);
  if (log_p.back().first == "logps/accuracies") result.figures.push_back(log_p.back());
  if (!has_reference_) return result;
  result.reference =
      of_log_p(at::tensor(rows_->values(), at::kFloat).reshape({rows_->size(), rows_->sequences_of_a_row()}));
  return result;
}

}  // namespace zero
