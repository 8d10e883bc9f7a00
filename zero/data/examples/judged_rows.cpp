#include "zero/data/examples/judged_rows.h"

#include <algorithm>
#include <utility>

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

class MismatchedRows final : public RowSource {
 public:
  MismatchedRows(std::shared_ptr<const KeptSequences> sequences, std::int64_t seq_len, std::int64_t group)
      : sequences_(std::move(sequences)), seq_len_(seq_len), group_(group) {}

  std::int64_t size() const override { return sequences_->size(); }
  Row row(std::int64_t index) const override { return row_of(tokens(index)); }
  std::int64_t trained_tokens(std::int64_t index) const override {
    const Tokens all = tokens(index);
    return std::ranges::count_if(all, is_trained);
  }
  std::int64_t length(std::int64_t index) const override { return std::ssize(tokens(index)) - 1; }
  std::string describe() const override { return sequences_->names(); }

 private:
  Tokens tokens(std::int64_t index) const {
    const std::int64_t first = index / group_ * group_, last = std::min(first + group_, size()) - 1;
    Tokens made, other;
    sequences_->read(index, made);
    sequences_->read(index > first ? index - 1 : last, other);
    made.erase(std::ranges::find_if(made, is_trained), made.end());
    made.insert(made.end(), std::ranges::find_if(other, is_trained), other.end());
    if (std::ssize(made) > seq_len_ + 1) made.resize(std::size_t(seq_len_) + 1);
    return made;
  }

  std::shared_ptr<const KeptSequences> sequences_;
  std::int64_t seq_len_, group_;
};

}  // namespace

JudgedRows::JudgedRows(std::vector<CachedTokens> files, const ConversationRowsOptions& options)
    : sequences_(std::make_shared<KeptSequences>(std::move(files), options.seq_len)), seq_len_(options.seq_len) {
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

std::string JudgedRows::describe() const {
  std::int64_t desirable = 0;
  for (std::int64_t i = 0; i < size(); ++i) desirable += sequences_->is_desirable(i);
  return text(sequences_->names(), ": ", sequences_->counts().examples, " judged answers in ", size(),
              " rows of at most ", seq_len_, " tokens, ", desirable, " of them desirable, ",
              sequences_->describe_tokens());
}

}  // namespace zero
