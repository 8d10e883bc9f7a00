#include "zero/programs/data_fit.h"

#include <algorithm>

#include "base/error.h"

namespace zero {
namespace {

constexpr std::int64_t least_seq_len = 16, length_unit = 64, steps_of_epoch = 10;

/// Halves the length of rows until the data have one. If a refusal has another cause, shorter rows are refused as well,
/// and the first refusal counts.
TrainingRows rows_of_shorter(Config& config, const ModelConfig& model, const std::optional<Tokenizer>& tokenizer) {
  const std::int64_t wanted = config.training.seq_len;
  try {
    return count_rows(config, model, tokenizer);
  } catch (const InputError&) {
    for (std::int64_t length = wanted / 2; length >= least_seq_len; length /= 2) {
      config.training.seq_len = length;
      try {
        return count_rows(config, model, tokenizer);
      } catch (const InputError&) {  // refused as well
      }
    }
    config.training.seq_len = wanted;
    throw;
  }
}

/// No longer than the longest row: the memory and time of longer ones would be planned in vain. Packed rows would be
/// packed otherwise, and rows of other validation files may be longer.
void shorten(Config& config, const TrainingRows& counts) {
  if (config.data.packing || !config.data.validation.empty()) return;
  const std::int64_t whole = (counts.longest + length_unit - 1) / length_unit * length_unit;
  config.training.seq_len = std::min(config.training.seq_len, whole);
}

/// So many rows that an epoch has some steps.
std::int64_t fitted_batch(std::int64_t wanted, std::int64_t rows, std::int64_t unit) {
  const std::int64_t whole = (wanted + unit - 1) / unit * unit;
  return std::min(whole, std::max(unit, rows / steps_of_epoch / unit * unit));
}

/// KTO exchanges the answers of a batch, which takes two.
std::int64_t least_unit(const Config& config, std::int64_t unit) {
  const bool exchanges = config.preference && config.preference->method == "kto" && config.preference->divergence;
  return exchanges && unit == 1 ? 2 : unit;
}

}  // namespace

std::optional<RunLength> fit_to_data(Config& config, const ModelConfig& model,
                                     const std::optional<Tokenizer>& tokenizer, const FitOptions& options) {
  if (!are_countable(config.data.train)) return std::nullopt;
  const TrainingRows counts =
      options.fits_seq_len ? rows_of_shorter(config, model, tokenizer) : count_rows(config, model, tokenizer);
  if (options.fits_seq_len) shorten(config, counts);
  std::int64_t& batch = *config.training.global_batch_size;
  if (options.fits_batch) batch = fitted_batch(batch, counts.rows, least_unit(config, options.unit));
  return RunLength::of(config, counts);
}

}  // namespace zero
