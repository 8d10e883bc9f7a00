#include "zero/programs/measured_run.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "base/byte_count.h"
#include "base/counted.h"
#include "base/error.h"
#include "base/files/lookup.h"
#include "base/log.h"
#include "zero/output/run_header.h"
#include "zero/report/metrics_table.h"

namespace zero {
namespace {

constexpr double short_rows = 0.9;  // rows of fewer of their tokens are not full

/// Seconds of each step after `begin` whose preceding step has a line too.
std::vector<double> step_seconds(const MetricsTable& table, std::int64_t begin) {
  std::vector<double> all;
  const MetricsSeries *ends = table.find("seconds"), *validations = table.find("validation_loss");
  const auto validated = [&](std::uint32_t row) {
    return validations && std::binary_search(validations->rows.begin(), validations->rows.end(), row);
  };
  for (std::size_t i = 1; ends && i < ends->rows.size(); ++i) {
    if (validated(ends->rows[i]) || table.steps[ends->rows[i - 1]] <= begin) continue;
    const std::int64_t steps = table.steps[ends->rows[i]] - table.steps[ends->rows[i - 1]];
    const double seconds = (ends->values[i] - ends->values[i - 1]) / double(steps);
    if (std::isfinite(seconds)) all.push_back(seconds);
  }
  return all;
}

/// The mean of the steps after `begin` whose preceding step has a line too; 0 if it is not known.
double tokens_per_step(const MetricsTable& table, std::int64_t begin) {
  const MetricsSeries* tokens = table.find("tokens");
  if (!tokens) return 0;
  std::size_t first = 0;
  while (first < tokens->rows.size() && table.steps[tokens->rows[first]] < begin) ++first;
  if (first + 1 >= tokens->rows.size()) return 0;
  const std::int64_t steps = table.steps[tokens->rows.back()] - table.steps[tokens->rows[first]];
  return (tokens->values.back() - tokens->values[first]) / double(steps);
}

std::string error_of(double predicted, double measured) {
  const double percent = 100 * (predicted / measured - 1);
  return text(percent < 0 ? "-" : "+", std::round(std::abs(percent) * 10) / 10, " %");
}

}  // namespace

bool is_run_folder(const std::string& path) { return is_folder(path) && is_there(path + "/config.toml"); }

MeasuredRun measured_run(const std::string& folder) {
  MeasuredRun run;
  run.config = (std::filesystem::path(folder) / "config.toml").string();
  std::ifstream file(run.config);
  const RunHeader header = run_header_of(std::string(std::istreambuf_iterator<char>(file), {}));
  run.ranks = header.ranks;
  run.resumed = header.steps_before > 0;
  if (!is_there(folder + "/metrics.jsonl")) return run;
  const MetricsTable table = read_metrics(folder + "/metrics.jsonl");
  std::vector<double> seconds = step_seconds(table, header.steps_before);  // former starts may have had other ranks
  run.figures.steps = std::int64_t(seconds.size());
  if (seconds.empty()) return run;
  std::nth_element(seconds.begin(), seconds.begin() + std::ptrdiff_t(seconds.size() / 2), seconds.end());
  run.figures.seconds = seconds[seconds.size() / 2];
  if (const MetricsSeries* peaks = table.find("peak_bytes"))
    for (std::size_t i = 0; i < peaks->values.size(); ++i)
      if (std::isfinite(peaks->values[i]) && table.steps[peaks->rows[i]] > header.steps_before)
        run.figures.peak_bytes = std::max(run.figures.peak_bytes, std::int64_t(peaks->values[i]));
  run.tokens_per_step = tokens_per_step(table, header.steps_before);
  return run;
}

std::string MeasuredRun::why_not_compared(const PlanMachine& machine, bool here) const {
  if (!here) return "the run's steps were not timed on " + machine.name;
  if (machine.nodes > 1) return text("this plan is for ", machine.nodes, " nodes, and the run's are not known");
  if (ranks > 0 && ranks != machine.ranks())
    return text("the run had ", counted(ranks, "rank"), ", and this plan has ", machine.ranks());
  if (figures.steps < 2)
    return text(resumed ? "the run's last start has " : "the run has ", counted(figures.steps, "timed step"),
                " without a validation, and a comparison needs two");
  return "";
}

std::string comparison_text(const MeasuredRun& run, const PlannedLayout& planned) {
  const MeasuredFigures& measured = run.figures;
  const double seconds = planned.time.seconds();
  std::string lines = text("step: predicted ", three_digits(seconds), " s, measured ", three_digits(measured.seconds),
                           " s (median of ", measured.steps, "), error ", error_of(seconds, measured.seconds), "\n");
  const std::int64_t bytes = planned.memory.plan.training_peak();
  if (measured.peak_bytes > 0)
    lines +=
        text("tensors of the fullest rank: predicted ", bytes_text(bytes), ", measured ",
             bytes_text(measured.peak_bytes), ", error ", error_of(double(bytes), double(measured.peak_bytes)), "\n");
  if (run.tokens_per_step > 0 && run.tokens_per_step < short_rows * planned.tokens())
    lines += text("the run's steps had ", std::llround(run.tokens_per_step), " tokens on average, and the plan is for ",
                  std::llround(planned.tokens()), ", those of full rows\n");
  return lines;
}

}  // namespace zero
