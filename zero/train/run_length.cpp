#include "zero/train/run_length.h"

#include <algorithm>
#include <cstdio>

#include "base/counted.h"
#include "base/error.h"
#include "base/files/lookup.h"
#include "base/files/scratch_folder.h"
#include "base/log.h"
#include "comm/self_communicator.h"
#include "zero/config/config_rules.h"
#include "zero/config/data_files.h"
#include "zero/data/rows/sample_order.h"
#include "zero/train/run_data.h"

namespace zero {
namespace {

constexpr std::int64_t most_text = std::int64_t{16} << 20, most_ids = std::int64_t{2} << 30;

}  // namespace

RunLength RunLength::of(const Config& config, const TrainingRows& counts) {
  const SampleOrder order({counts.rows, *config.training.global_batch_size, 0, false, {}});
  const std::int64_t steps = config.training.steps ? *config.training.steps : order.steps_of(*config.training.epochs);
  return {counts, steps, order.epochs_after(steps)};
}

std::string RunLength::describe(const Config& config) const {
  char passes[32];
  std::snprintf(passes, sizeof passes, epochs < 10 ? "%.2g" : "%.0f", epochs);
  const std::int64_t batch = *config.training.global_batch_size;
  const std::int64_t most = config.row_tokens(), mean = counts.tokens / std::max<std::int64_t>(counts.rows, 1);
  const bool varies = 10 * mean < 9 * most;
  return text(counted(counts.rows, "row"), " of ", varies ? "at most " : "", most, " tokens",
              varies ? text(", ", mean, " on average") : "", ": ", counted(steps, "step"), " of ",
              counted(batch, "row"), ", ", passes, passes == std::string("1") ? " epoch" : " epochs");
}

bool are_countable(const std::vector<std::string>& files) {
  std::int64_t texts = 0, ids = 0;
  for (const std::string& file : files) {
    const FileFacts facts = facts_of(file);
    if (facts.kind != FileFacts::Kind::file) return false;
    (data_kind(file) == "bin" ? ids : texts) += facts.bytes;
  }
  return texts <= most_text && ids <= most_ids;
}

TrainingRows count_rows(const Config& config, const ModelConfig& model, const std::optional<Tokenizer>& tokenizer) {
  std::optional<ScratchFolder> folder;  // ids need none
  if (std::ranges::any_of(config.data.train, [](const std::string& file) { return data_kind(file) != "bin"; }))
    folder.emplace("rows");
  SelfCommunicator self;
  return count_training_rows(config, model, tokenizer, folder ? folder->path() : "", self);
}

std::optional<RunLength> counted_length(const Config& config, const ModelConfig& model,
                                        const std::optional<Tokenizer>& tokenizer) {
  const bool are_ids =
      std::ranges::all_of(config.data.train, [](const std::string& file) { return data_kind(file) == "bin"; });
  if ((!tokenizer && !are_ids) || !are_countable(config.data.train)) return std::nullopt;
  const RunLength length = RunLength::of(config, count_rows(config, model, tokenizer));
  validate_for_steps(config, length.steps, length.describe(config));
  return length;
}

}  // namespace zero
