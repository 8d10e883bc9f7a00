#include "zero/data/examples/pair_rows.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/counted.h"
#include "base/error.h"
#include "base/log.h"
#include "models/loss/orpo_loss.h"
#include "models/unit.h"

namespace zero {

namespace {

/// The inputs with which both sequences begin, up to the one whose target is the first token of an answer.
std::uint32_t common_inputs(const std::vector<std::int64_t>& chosen, const std::vector<std::int64_t>& rejected) {
  const std::size_t inputs = std::min(chosen.size(), rejected.size()) - 1;
  std::uint32_t n = 0;
  while (n < inputs && chosen[n] == rejected[n] && !is_trained(chosen[n + 1]) && !is_trained(rejected[n + 1])) ++n;
  return n;
}

}  // namespace

PairRows::PairRows(std::vector<CachedTokens> files, const ConversationRowsOptions& options, PairForm form)
    : sequences_(std::move(files), options), seq_len_(options.seq_len), form_(form) {
  ZERO_CHECK(options.use == ExampleUse::pair && sequences_.size() % 2 == 0, "a pair is two sequences");
  if (!form.shares_prompts) return;
  std::vector<std::int64_t> chosen, rejected;
  for (std::int64_t pair = 0; pair < size(); ++pair) {
    sequences_.read(2 * pair, chosen);
    sequences_.read(2 * pair + 1, rejected);
    trunks_.push_back(common_inputs(chosen, rejected));
  }
}

Row PairRows::row(std::int64_t index) const {
  ZERO_CHECK(index >= 0 && index < size(), text("row ", index, " of ", size()));
  Row row;
  std::vector<std::int64_t> tokens;
  std::vector<float> answers;
  const auto trunk_end = std::size_t(trunk(index));
  for (std::int32_t document = 0; document < 2; ++document) {
    sequences_.read(2 * index + document, tokens);
    const bool all = trains_prompts() && document == 0;
    for (std::size_t t = document == 0 ? 0 : trunk_end; t + 1 < tokens.size(); ++t) {
      const std::int64_t next = tokens[t + 1];
      row.ids.push_back(id_of(tokens[t]));
      row.targets.push_back(all || is_trained(next) ? id_of(next) : ignored_target);
      row.positions.push_back(std::int64_t(t));
      row.documents.push_back(t < trunk_end ? trunk_of(0) : document);
      answers.push_back(is_trained(next) ? 1 : 0);
    }
  }
  if (trains_prompts()) row.named_of_tokens[answers_name] = std::move(answers);
  return row;
}

std::int64_t PairRows::trained_tokens(std::int64_t index) const {
  return first_trained(index) + sequences_.trained(2 * index + 1);
}

std::int64_t PairRows::first_trained(std::int64_t index) const {
  return trains_prompts() ? sequences_.length(2 * index) : sequences_.trained(2 * index);
}

std::int64_t PairRows::length(std::int64_t index) const {
  return sequences_.length(2 * index) + sequences_.length(2 * index + 1) - trunk(index);
}

std::vector<std::string> PairRows::named_tensors() const {
  if (trains_prompts()) return {answers_name};
  return {};
}

std::string PairRows::warning() const {
  const std::string words = sequences_.warning(), repeats = sequences_.warning_of_repeats(2);
  return words + (words.empty() || repeats.empty() ? "" : ". ") + repeats;
}

std::string PairRows::describe() const {
  return text(sequences_.names(), ": ", counted(sequences_.counts().examples, "pair"), " in ", counted(size(), "row"),
              " of at most 2 x ", seq_len_, " tokens, ", sequences_.describe_tokens(),
              trunks_.empty() ? ""
                              : text("; common prompts save ",
                                     std::accumulate(trunks_.begin(), trunks_.end(), std::int64_t{0}), " tokens"));
}

}  // namespace zero
