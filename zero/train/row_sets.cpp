#include "zero/train/row_sets.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "zero/data/examples/judged_rows.h"
#include "zero/data/rows/held_out_rows.h"
#include "zero/data/rows/joined_rows.h"

namespace zero {

RowSet row_set_of(std::shared_ptr<const RowSource> rows, const Config& config, std::int64_t global_batch_size,
                  const std::string& place) {
  const auto* judged = dynamic_cast<const JudgedRows*>(rows.get());
  if (!judged || !config.preference->divergence) return {std::move(rows), nullptr};
  const std::string exchange = "preference.method = \"kto\" exchanges the answers of a batch, and ";
  const std::string otherwise = ", or set preference.divergence = false";
  if (global_batch_size < 2)
    throw InputError(config.where("training.global_batch_size") + ": " + exchange + "needs at least two: raise it" +
                     otherwise);
  if (rows->size() < 2) throw InputError(place + ": " + exchange + "there is one: name files with more" + otherwise);
  auto mismatched = judged->mismatched(global_batch_size);
  return {std::move(rows), std::move(mismatched)};
}

RowSet hold_out(const Config& config, std::vector<RowSet>& sets) {
  std::vector<RowSet> validation;
  std::int64_t all = 0;
  for (RowSet& set : sets) {
    const std::int64_t rows = set.rows->size();
    const auto held = std::min<std::int64_t>(std::llround(config.data.validation_fraction * double(rows)), rows - 1);
    all += rows;
    if (held < 1) continue;
    RowSet& out = validation.emplace_back();
    for (const auto part : {&RowSet::rows, &RowSet::mismatched}) {
      if (!(set.*part)) continue;
      out.*part = std::make_shared<HeldOutRows>(set.*part, held, HeldOutRows::Side::validation);
      set.*part = std::make_shared<HeldOutRows>(set.*part, held, HeldOutRows::Side::training);
    }
  }
  if (validation.empty())
    throw InputError(text(config.where("data.validation_fraction"), ": is 0 of ", all,
                          " rows; at least one must be held out, and one left to train on"));
  return join(validation);
}

RowSet join(const std::vector<RowSet>& sets) {
  RowSet all;
  for (const auto part : {&RowSet::rows, &RowSet::mismatched}) {
    std::vector<std::shared_ptr<const RowSource>> sources;
    for (const RowSet& set : sets)
      if (set.*part) sources.push_back(set.*part);
    if (!sources.empty()) all.*part = joined(std::move(sources));
  }
  return all;
}

std::vector<WeightedRows> weighted(const std::vector<RowSet>& sets, const std::vector<double>& weights) {
  std::vector<WeightedRows> sources;
  for (std::size_t i = 0; i < weights.size(); ++i) sources.push_back({sets[i].rows->size(), weights[i]});
  return sources;
}

}  // namespace zero
