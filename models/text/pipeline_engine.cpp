// The TokenizerEngine for a tokenizer.json.
#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/log.h"
#include "base/utf8.h"
#include "models/text/pipeline/text_pipeline.h"
#include "models/text/pipeline/token_decoder.h"
#include "models/text/tokenizer_engine.h"

namespace zero {
namespace {

constexpr std::string_view replacement_character = "\uFFFD";

/// The text of all ids so far, without what has been returned: some decoders change earlier text, or join bytes. Ids
/// whose text has been returned are dropped, except for the last few, which give context for decoding the next ones.
class PipelineStream : public IdStream {
 public:
  /// `front` holds ids that precede the first one and whose text is not returned.
  PipelineStream(std::shared_ptr<const TextPipeline> pipeline, std::vector<std::int32_t> front)
      : pipeline_(std::move(pipeline)), ids_(std::move(front)), given_ids_(ids_.size()) {
    given_ = text();
  }

  std::string next(std::int32_t id) override {
    ids_.push_back(id);
    const std::string now = text();
    if (now.ends_with(replacement_character)) return "";
    const std::size_t same = common(now);  // a decoder may take back what was given: a space in front of a full stop
    if (same == now.size()) return "";
    std::string more = now.substr(same);
    ids_.erase(ids_.begin(), ids_.begin() + static_cast<std::ptrdiff_t>(given_ids_));
    given_ids_ = ids_.size();
    given_ = text();
    return more;
  }

  std::string finish() override {
    const std::string now = text();
    const std::size_t same = common(now);
    given_ = now;
    return now.substr(same);
  }

 private:
  std::string text() const { return pipeline_->decode(ids_, true); }
  /// How much of the text has already been returned, in whole characters.
  std::size_t common(const std::string& now) const {
    const auto [end, unused] = std::mismatch(now.begin(), now.end(), given_.begin(), given_.end());
    auto same = static_cast<std::size_t>(end - now.begin());
    while (same > 0 && same < now.size() && utf8_continues(now[same])) --same;
    return same;
  }

  std::shared_ptr<const TextPipeline> pipeline_;
  std::vector<std::int32_t> ids_;
  std::size_t given_ids_ = 0;  // of them, whose text was given
  std::string given_;          // their text
};

class PipelineEngine : public TokenizerEngine {
 public:
  explicit PipelineEngine(const std::string& folder);

  std::vector<std::int32_t> encode(std::string_view text, bool inside) const override {
    return pipeline_->encode_part(to_utf8(text), inside);
  }
  std::string decode(const std::vector<std::int32_t>& ids) const override { return pipeline_->decode(ids, true); }
  std::unique_ptr<IdStream> stream(bool at_start) const override {
    return std::make_unique<PipelineStream>(pipeline_, at_start ? std::vector<std::int32_t>{} : letter_);
  }
  std::size_t next_cut(std::string_view text, std::size_t from) const override {
    return pipeline_->next_cut(text, from);
  }
  const std::string& piece(std::int64_t id) const override {
    static const std::string none;
    const std::string* written = pipeline_->written(static_cast<std::int32_t>(id));
    return written ? *written : none;
  }
  std::optional<std::int32_t> id_of(std::string_view piece) const override { return pipeline_->id_of(piece); }
  float score(std::int64_t) const override { return 0; }
  TokenType type(std::int64_t id) const override;
  std::shared_ptr<const TextPipeline> pipeline() const override { return pipeline_; }

 private:
  std::shared_ptr<const TextPipeline> pipeline_;
  std::vector<std::int32_t> letter_;  // a token that stands in for a text before the first id
};

PipelineEngine::PipelineEngine(const std::string& folder)
    : pipeline_(std::make_shared<const TextPipeline>(TextPipeline::load(folder))) {
  facts_.path = (std::filesystem::path(folder) / "tokenizer.json").string();
  if (const auto& mark = pipeline_->invented_mark())
    throw InputError(
        zero::text(folder, ": tokenizer_config.json names \"", *mark,
                   "\" as BOS or EOS, which tokenizer.json does not have: mend the name, or give the token an "
                   "id in added_tokens_decoder"));
  facts_.hash = pipeline_->hash();
  facts_.added = pipeline_->added_tokens();
  facts_.hash_added();
  facts_.vocab_size = facts_.model_size = pipeline_->vocab_size();
  facts_.bos = pipeline_->bos();
  facts_.eos = pipeline_->eos();
  facts_.opening = pipeline_->opening();
  facts_.closing = pipeline_->closing();
  if (facts_.eos && (facts_.closing.empty() || facts_.closing.back() != *facts_.eos))
    facts_.closing.push_back(*facts_.eos);
  if (const auto letter = pipeline_->id_of("a")) letter_.push_back(*letter);
}

TokenType PipelineEngine::type(std::int64_t id) const {
  const auto& added = facts_.added;
  const auto found = std::lower_bound(added.begin(), added.end(), id,
                                      [](const AddedToken& token, std::int64_t which) { return token.id < which; });
  if (found != added.end() && found->id == id) return found->special ? TokenType::control : TokenType::user_defined;
  return pipeline_->written(static_cast<std::int32_t>(id)) ? TokenType::normal : TokenType::unused;
}

}  // namespace

std::unique_ptr<const TokenizerEngine> make_pipeline_engine(const std::string& folder) {
  return std::make_unique<const PipelineEngine>(folder);
}

}  // namespace zero
