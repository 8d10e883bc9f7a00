#pragma once
// ReportedRun: all facts that a report shows about a run, read from its output directory.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "zero/output/run_header.h"
#include "zero/output/sample_lines.h"
#include "zero/report/metrics_table.h"
#include "zero/report/run_settings.h"
#include "zero/report/thinning.h"

namespace zero {

/// Finished: the last step is done and the result exists. Stopped: the run is neither finished nor running, for any
/// reason.
enum class RunState : std::uint8_t { running, finished, stopped };

/// The figures of a run's last line and over all lines. A figure is absent if no line has the field, and NaN if it is
/// not finite.
struct RunFigures {
  std::int64_t steps = 0;  // of the last line
  std::optional<double> final_loss, best_loss, validation_loss, seconds, tokens;
  std::optional<double> rate;        // median of tokens_per_second
  std::optional<double> peak_bytes;  // the largest peak of tensors, on the rank with the most
};

/// The curve of a field, thinned.
struct ReportedCurve {
  std::string field;
  std::vector<std::int64_t> steps;  // of its points; empty: the run's steps
  ThinnedSeries points;
  bool is_thinned = false;
  std::vector<std::int64_t> not_finite_at;  // the first of these steps, as many as are drawn
};

/// The continuations of prompts after a step.
struct ReportedSamples {
  std::int64_t step = 0;
  std::vector<Sample> samples;
};

/// The size of a report, shared by its runs.
struct ReportRoom {
  std::size_t numbers = 0;  // the approximate number of values in all curves of a run
  std::size_t samples = 0;  // bytes of a run's samples in the page's JSON
};

struct ReportedRun {
  std::string folder, name;
  RunState state = RunState::stopped;
  RunHeader header;
  RunSettings settings;
  RunFigures figures;
  std::int64_t restarts = 0;             // starts after the first, and steps back within the file
  std::vector<std::int64_t> steps;       // of the points of fields that every line has
  std::vector<double> tokens, seconds;   // at these steps; empty unless every line has them
  std::vector<ReportedCurve> curves;     // in the order of the file
  std::vector<ReportedSamples> samples;  // by step; the newest ones that have room
  std::vector<std::string> notes;        // on missing or omitted data

  /// Steps that the configuration asks for; nothing if it counts epochs or is missing.
  std::optional<std::int64_t> planned() const;
};

/// Returns the output directory that an argument names. The argument is that folder or its metrics.jsonl. Throws
/// InputError if the folder has neither metrics.jsonl nor a run's mark.
std::string run_folder_of(const std::string& argument);

/// Reads a run. Changes nothing in the folder. Throws InputError if a file cannot be read.
ReportedRun read_run(const std::string& folder, const ReportRoom& room);

/// Names each run by the shortest end of its folder's path that no other run has: "a/run", "b/run".
void name_runs(std::vector<ReportedRun>& runs);

}  // namespace zero
