#pragma once
// MetricsTable: the numbers of a run's metrics.jsonl, by step.
#include <cstdint>
#include <string>
#include <vector>

namespace zero {

/// The values of one field. NaN stands for null in the file, that is, for a number that is not finite.
struct MetricsSeries {
  std::string name;
  std::vector<std::uint32_t> rows;  // ascending; fewer than the steps if some lines lack the field
  std::vector<double> values;       // one per row
};

struct MetricsTable {
  std::vector<std::int64_t> steps;  // strictly ascending
  std::vector<MetricsSeries> series;
  std::int64_t went_back = 0;  // lines that repeat a step, because the run began again from an earlier step
  std::int64_t damaged = 0;    // lines that are not objects with a step
  std::int64_t dropped = 0;    // values of fields beyond the first `most_series`
  bool is_torn = false;        // the last line has no end, and does not count

  static constexpr std::size_t most_series = 64;

  /// Returns null if no line has the field.
  const MetricsSeries* find(const std::string& name) const;
};

/// Reads a file as far as it is written. If a line repeats a step, it replaces the earlier lines of that step and of
/// later steps. That happens if a run continues from a checkpoint. Every field with a number or null counts, except
/// "version" and "step". Throws InputError if the file cannot be read, or if it has lines but none with a step.
MetricsTable read_metrics(const std::string& path);

}  // namespace zero
