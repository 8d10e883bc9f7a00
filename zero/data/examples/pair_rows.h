#pragma once
// PairRows: preference pairs as rows. A row holds the chosen sequence as document 0 and the rejected one as document 1,
// so a pair is never divided over ranks or micro-batches. The tokens with which both begin are their trunk
// (models/unit.h): a row holds them once, and the model computes them once.
#include <cstdint>
#include <vector>

#include "zero/data/examples/kept_sequences.h"
#include "zero/data/rows/row_source.h"

namespace zero {

/// The targets of a row of pairs besides those of the answers.
enum class PairTargets : std::uint8_t {
  answers,         // nothing
  chosen_prompts,  // the targets of the chosen sequence's prompt, and the tensor of answers_name (models/loss/orpo_loss.h)
};

struct PairForm {
  PairTargets targets = PairTargets::answers;
  bool shares_prompts = false;  // a row holds a pair's common prompt once
};

class PairRows final : public RowSource {
 public:
  /// `files`: made by example_recipe() for pairs. Throws InputError as KeptSequences does.
  PairRows(std::vector<CachedTokens> files, const ConversationRowsOptions& options, PairForm form);

  std::int64_t size() const override { return sequences_.size() / 2; }
  Row row(std::int64_t index) const override;
  std::int64_t trained_tokens(std::int64_t index) const override;
  std::int64_t first_trained(std::int64_t index) const override;
  std::int64_t length(std::int64_t index) const override;
  std::vector<std::string> named_tensors() const override;
  std::string describe() const override;
  std::string warning() const override;

 private:
  bool trains_prompts() const { return form_.targets == PairTargets::chosen_prompts; }
  std::int64_t trunk(std::int64_t index) const { return trunks_.empty() ? 0 : trunks_[std::size_t(index)]; }

  KeptSequences sequences_;
  std::int64_t seq_len_;
  PairForm form_;
  std::vector<std::uint32_t> trunks_;  // inputs that a pair's sequences share; empty: none
};

}  // namespace zero
