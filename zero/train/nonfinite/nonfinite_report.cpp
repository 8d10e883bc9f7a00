#include "zero/train/nonfinite/nonfinite_report.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "base/log.h"
#include "comm/object_collectives.h"

namespace zero {
namespace {

constexpr std::size_t shown_ranks = 4, shown_rows = 8;

std::string rows_text(const std::vector<std::int64_t>& rows) {
  std::string list;
  for (std::size_t i = 0; i < std::min(rows.size(), shown_rows); ++i) list += text(i == 0 ? " " : ", ", rows[i]);
  return text(rows.size() == 1 ? "row" : "rows", list, rows.size() > shown_rows ? ", ..." : "");
}

/// The sign of a NaN means nothing, so it is dropped.
double unsigned_nan(double value) { return std::isnan(value) ? std::abs(value) : value; }

std::string losses_text(const std::vector<NonfiniteLoss>& losses) {
  if (losses.empty()) return "; every rank's loss is finite";
  std::string list;
  for (std::size_t i = 0; i < std::min(losses.size(), shown_ranks); ++i)
    list += text(i == 0 ? "; the loss of rank " : ", of rank ", losses[i].rank, " is ", unsigned_nan(losses[i].loss),
                 ", in micro-batch ", losses[i].micro_batch, " (", rows_text(losses[i].rows), " of the training data)");
  if (losses.size() > shown_ranks) list += text(", and of ", losses.size() - shown_ranks, " more ranks");
  return list;
}

/// Returns the index of the first loss that is not finite.
std::int64_t index_of_bad(const std::vector<at::Tensor>& losses) {
  for (std::size_t i = 0; i < losses.size(); ++i)
    if (!std::isfinite(losses[i].item<double>())) return std::int64_t(i);
  return 0;
}

}  // namespace

std::string NonfiniteReport::describe() const {
  std::string words = text("step ", step + 1, ": the gradients' norm is ", unsigned_nan(norm), losses_text(losses));
  if (!gradients_are_known)
    words += "; which gradients are not finite is not known, since the next step was under way";
  else
    words += gradients ? "; gradients are not finite " + gradients->describe() : "; each gradient is finite";
  if (states)
    words += "; the states themselves are not finite " + states->describe() +
             ": they were so at the start, or became "
             "so by an update";
  if (frozen)
    words += "; weights that are not trained are not finite " + frozen->describe() +
             ": the model that training began with has them so";
  return words;
}

bool losses_are_finite(Engine& engine, const StepResult& result) {
  const std::vector<std::int64_t> all =
      all_gather_number(engine.host(), std::isfinite(result.loss_sum()) ? 1 : 0, {Phase::other});
  return std::find(all.begin(), all.end(), 0) == all.end();
}

NonfiniteReport find_nonfinite(Engine& engine, Loader& data, std::int64_t step, const StepResult& result,
                               const std::vector<at::Tensor>& losses, bool gradients_are_there) {
  NonfiniteReport report{step, result.norm, {}, gradients_are_there, {}, {}, {}};
  const bool counts = engine.mesh().index(axes::tokens.others()) == 0;  // true on one of the ranks with the same tokens
  const bool bad = counts && !std::isfinite(result.loss_sum());
  const std::array mine{bad ? index_of_bad(losses) : std::int64_t(-1), std::bit_cast<std::int64_t>(result.loss_sum())};
  const std::vector<std::int64_t> all = all_gather_numbers(engine.host(), mine, {Phase::other});
  for (int rank = 0; rank < engine.host().size(); ++rank) {
    const std::int64_t micro_batch = all[2 * std::size_t(rank)];
    if (micro_batch >= 0)
      report.losses.push_back({rank, std::bit_cast<double>(all[2 * std::size_t(rank) + 1]), micro_batch,
                               data.rows(step, micro_batch, engine.mesh().shape().index(rank, axes::rows))});
  }
  if (gradients_are_there) report.gradients = nonfinite_gradients(engine);
  report.states = nonfinite_states(engine);
  if (!report.states) report.frozen = nonfinite_frozen(engine);
  return report;
}

}  // namespace zero
