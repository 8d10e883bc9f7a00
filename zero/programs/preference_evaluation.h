#pragma once
// PreferenceEvaluation: judges a model's answers to a file of pairs or of judged answers, as a validation of a
// preference run does (docs/preferences.md).
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/loss/loss.h"
#include "zero/core/engine.h"
#include "zero/data/examples/judged_rows.h"
#include "zero/data/rows/loader.h"
#include "zero/data/rows/reference_rows.h"
#include "zero/programs/preference_source.h"

namespace zero {

using NamedFigures = std::vector<std::pair<std::string, double>>;

struct PreferenceFigures {
  std::string method;          // dpo | orpo | kto
  std::optional<double> loss;  // none without the reference that it needs
  NamedFigures figures;    // names of validations, and "logps/accuracies": the share of pairs whose chosen answer has
                           // the higher log p. Without a reference, only those of log p
  NamedFigures reference;  // those of log p under the reference; empty: none
  std::int64_t rows = 0, tokens = 0;
};

class PreferenceEvaluation {
 public:
  /// `rows`: PairRows for dpo and orpo, JudgedRows for kto.
  PreferenceEvaluation(std::shared_ptr<const RowSource> rows, const PreferenceSource& source);

  bool needs_reference() const;
  /// Computes the log-probabilities of the reference, whose weights the engine holds. Collective.
  void take_reference(Engine& engine);
  /// Judges the model whose weights the engine holds. Results are the same bit for bit on any number of ranks.
  /// Collective.
  PreferenceFigures evaluate(Engine& engine);

 private:
  ValidationLoader loader_of(std::shared_ptr<const RowSource> rows, Engine& engine, const Loss& loss) const;
  at::Tensor log_probabilities(Engine& engine, const ReferenceRows& rows) const;
  std::optional<double> divergence(Engine& engine) const;
  double share_of_pairs(const at::Tensor& values) const;
  NamedFigures of_log_p(const at::Tensor& values) const;

  PreferenceSection settings_;
  std::shared_ptr<const RowSource> source_;
  const JudgedRows* judged_;                          // null: rows are pairs
  std::shared_ptr<ReferenceRows> rows_, mismatched_;  // mismatched: null without a divergence
  std::unique_ptr<const Loss> loss_;
  bool has_reference_ = false;
};

}  // namespace zero
