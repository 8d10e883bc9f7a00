#include "zero/data/examples/pair_rows.h"

#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "models/loss/orpo_loss.h"
#include "models/unit.h"

namespace zero {

PairRows::PairRows(std::vector<CachedTokens> files, const ConversationRowsOptions& options, PairTargets targets)
    : sequences_(std::move(files), options.seq_len), seq_len_(options.seq_len), targets_(targets) {
  ZERO_CHECK(options.use == ExampleUse::pair && sequences_.size() % 2 == 0, "a pair is two sequences");
}

Row PairRows::row(std::int64_t index) const {
  ZERO_CHECK(index >= 0 && index < size(), text("row ", index, " of ", size()));
  Row row;
  std::vector<std::int64_t> tokens;
  std::vector<float> answers;
  for (std::int32_t document = 0; document < 2; ++document) {
    sequences_.read(2 * index + document, tokens);
    const bool all = targets_ == PairTargets::chosen_prompts && document == 0;
    for (std::size_t t = 0; t + 1 < tokens.size(); ++t) {
      const std::int64_t next = tokens[t + 1];
      row.ids.push_back(id_of(tokens[t]));
      row.targets.push_back(all || is_trained(next) ? id_of(next) : ignored_target);
      row.positions.push_back(std::int64_t(t));
      row.documents.push_back(document);
      answers.push_back(is_trained(next) ? 1 : 0);
    }
  }
  if (targets_ == PairTargets::chosen_prompts) row.named_of_tokens[answers_name] = std::move(answers);
  return row;
}

std::int64_t PairRows::trained_tokens(std::int64_t index) const {
  return first_trained(index) + sequences_.trained(2 * index + 1);
}

std::int64_t PairRows::first_trained(std::int64_t index) const {
  return targets_ == PairTargets::chosen_prompts ? sequences_.length(2 * index) : sequences_.trained(2 * index);
}

std::int64_t PairRows::length(std::int64_t index) const {
  return sequences_.length(2 * index) + sequences_.length(2 * index + 1);
}

std::vector<std::string> PairRows::named_tensors() const {
  if (targets_ == PairTargets::chosen_prompts) return {answers_name};
  return {};
}

std::string PairRows::warning() const {
  const std::string words = sequences_.warning(), repeats = sequences_.warning_of_repeats(2);
  return words + (words.empty() || repeats.empty() ? "" : ". ") + repeats;
}

std::string PairRows::describe() const {
  return text(sequences_.names(), ": ", sequences_.counts().examples, " pairs in ", size(), " rows of at most 2 x ",
              seq_len_, " tokens, ", sequences_.describe_tokens());
}

}  // namespace zero
