#pragma once
// RowSet: the rows of a run's data set, and which of them are held out for validation.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "zero/config/config.h"
#include "zero/data/rows/row_source.h"
#include "zero/data/rows/sample_order.h"

namespace zero {

/// Rows, and for KTO their mismatched answers, with the same numbers.
struct RowSet {
  std::shared_ptr<const RowSource> rows, mismatched;
};

/// Makes the set of a source's rows. `place` begins messages. Throws InputError if KTO has no answers to exchange.
RowSet row_set_of(std::shared_ptr<const RowSource> rows, const Config& config, std::int64_t global_batch_size,
                  const std::string& place);

/// Holds out data.validation_fraction of the rows of each set, and returns them as one set. The sets become the rest. A
/// set with few rows may give none. Throws InputError if all of them give none.
RowSet hold_out(const Config& config, std::vector<RowSet>& sets);

/// Joins the sets, one after the other.
RowSet join(const std::vector<RowSet>& sets);

/// The sources of a SampleOrder: the rows and the weight of each set; empty without data.weights.
std::vector<WeightedRows> weighted(const std::vector<RowSet>& sets, const std::vector<double>& weights);

}  // namespace zero
