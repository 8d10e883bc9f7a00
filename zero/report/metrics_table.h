#pragma once
// MetricsTable: the numbers of a run's metrics.jsonl, by step.
#include <cstdint>
#include <string>
#include <vector>

namespace zero {

/// The values of one field. NaN: null in the file, which stands for a number that is not finite.
struct MetricsSeries {
  std::string name;
  std::vector<std::uint32_t> rows;  // ascending; fewer than steps where a field is not in every line
  std::vector<double> values;       // one a row
};

struct MetricsTable {
  std::vector<std::int64_t> steps;  // strictly ascending
  std::vector<MetricsSeries> series;
  std::int64_t went_back = 0;  // lines whose step was there already: the run began again from an earlier one
  std::int64_t damaged = 0;    // lines that are no objects with a step
  std::int64_t dropped = 0;    // values of fields beyond the first `most_series`
  bool is_torn = false;        // the last line has no end, and does not count

  static constexpr std::size_t most_series = 64;

  /// Null where no line has the field.
  const MetricsSeries* find(const std::string& name) const;
};

/// Reads a file as far as it is written. Where a step comes again, the lines from there on replace those of that step
/// and later, as in a run that goes on from a checkpoint. Every field with a number or null counts, except "version"
/// and "step". Throws InputError if the file cannot be read, or has lines and none of a step.
MetricsTable read_metrics(const std::string& path);

}  // namespace zero
