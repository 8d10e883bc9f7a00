#include "zero/data/examples/judged_rows.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/counted.h"
#include "base/error.h"
#include "base/log.h"
#include "models/loss/kto_loss.h"
#include "models/unit.h"

namespace zero {
namespace {

/// Tokens as EncodedExamples stores them. An answer begins with the first trained one.
using Tokens = std::vector<std::int64_t>;

Row row_of(const Tokens& tokens) {
  Row row;
  for (std::size_t t = 0; t + 1 < tokens.size(); ++t) {
    row.ids.push_back(id_of(tokens[t]));
    row.targets.push_back(is_trained(tokens[t + 1]) ? id_of(tokens[t + 1]) : ignored_target);
  }
  return row;
}

/// The rings of rows that exchange answers: [0], [first], ..., [size]. A last row alone joins the ring before it.
std::vector<std::int64_t> rings_of(std::int64_t rows, std::int64_t group) {
  std::vector<std::int64_t> starts;
  for (std::int64_t first = 0; first < rows; first += group)
    if (first == 0 || first + 1 < rows) starts.push_back(first);
  starts.push_back(rows);
  return starts;
}

class MismatchedRows final : public RowSource {
 public:
  MismatchedRows(std::shared_ptr<const KeptSequences> sequences, std::int64_t seq_len, std::int64_t group)
      : sequences_(std::move(sequences)), seq_len_(seq_len) {
    const std::vector<std::int64_t> rings = rings_of(size(), group);
    for (std::size_t r = 0; r + 1 < rings.size(); ++r)
      for (std::int64_t index = rings[r]; index < rings[r + 1]; ++index)
        givers_.push_back(giver_of(index, rings[r], rings[r + 1]));
  }

  std::int64_t size() const override { return sequences_->size(); }
  Row row(std::int64_t index) const override {
    Tokens made = prompt(index), other;
    sequences_->read(givers_[std::size_t(index)], other);
    made.insert(made.end(), std::ranges::find_if(other, is_trained), other.end());
    made.resize(std::size_t(length(index)) + 1);
    return row_of(made);
  }
  std::int64_t trained_tokens(std::int64_t index) const override { return length(index) + 1 - prompt_tokens(index); }
  std::int64_t length(std::int64_t index) const override {
    return std::min(seq_len_, prompt_tokens(index) + sequences_->trained(givers_[std::size_t(index)]) - 1);
  }
  std::string describe() const override { return sequences_->names(); }

 private:
  std::int64_t prompt_tokens(std::int64_t index) const {
    return sequences_->length(index) + 1 - sequences_->trained(index);
  }
  Tokens prompt(std::int64_t index) const {
    Tokens tokens;
    sequences_->read(index, tokens);
    tokens.resize(std::size_t(prompt_tokens(index)));
    return tokens;
  }
  /// The prompts of a pair's texts may end with different tokens.
  bool are_of_one_pair(std::int64_t one, std::int64_t other) const {
    return std::abs(one - other) == 1 && sequences_->is_paired(std::max(one, other));
  }
  /// The nearest row before this one in its ring that has another prompt; the row before it if there is none.
  std::int64_t giver_of(std::int64_t index, std::int64_t begin, std::int64_t end) const {
    const auto before = [&](std::int64_t row) { return row > begin ? row - 1 : end - 1; };
    for (std::int64_t row = before(index); row != index; row = before(row))
      if (!are_of_one_pair(row, index) && prompt(row) != prompt(index)) return row;
    return before(index);
  }

  std::shared_ptr<const KeptSequences> sequences_;
  std::int64_t seq_len_;
  std::vector<std::int64_t> givers_;  // by row: the row whose answer it takes
};

}  // namespace

JudgedRows::JudgedRows(std::vector<CachedTokens> files, const ConversationRowsOptions& options)
    : sequences_(std::make_shared<KeptSequences>(std::move(files), options)), seq_len_(options.seq_len) {
  ZERO_CHECK(options.use == ExampleUse::judged, "the files are of other examples");
}

std::shared_ptr<const RowSource> JudgedRows::mismatched(std::int64_t group) const {
  return std::make_shared<MismatchedRows>(sequences_, seq_len_, group);
}

Row JudgedRows::row(std::int64_t index) const {
  ZERO_CHECK(index >= 0 && index < size(), text("row ", index, " of ", size()));
  Tokens tokens;
  sequences_->read(index, tokens);
  Row row = row_of(tokens);
  row.named[desirable_name] = {sequences_->is_desirable(index) ? 1.0f : 0.0f};
  return row;
}

std::vector<std::string> JudgedRows::named_tensors() const { return {desirable_name}; }

std::int64_t JudgedRows::desirable() const {
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < size(); ++i) count += sequences_->is_desirable(i);
  return count;
}

std::string JudgedRows::describe() const {
  return text(sequences_->names(), ": ", counted(sequences_->counts().examples, "judged answer"), " in ",
              counted(size(), "row"), " of at most ", seq_len_, " tokens, ", desirable(), " of them desirable, ",
              sequences_->describe_tokens());
}

std::string JudgedRows::warning() const {
  std::string words = sequences_->warning();
  if (const std::string repeats = sequences_->warning_of_repeats(1); !repeats.empty())
    words += (words.empty() ? "" : ". ") + repeats;
  const std::int64_t liked = desirable();
  if (liked == 0 || liked == size())
    words += text(words.empty() ? "" : ". ", "All answers have the label ", liked > 0 ? "true" : "false",
                  ": KTO learns from the difference between both kinds");
  return words;
}

}  // namespace zero
