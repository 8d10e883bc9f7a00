#pragma once
// ReportedRun: all that a report says of a run, from its output directory.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "zero/output/run_header.h"
#include "zero/report/metrics_table.h"
#include "zero/report/run_settings.h"
#include "zero/report/thinning.h"

namespace zero {

/// Finished: its last step is done and its result is there. Stopped: neither finished nor running, for any reason.
enum class RunState : std::uint8_t { running, finished, stopped };

/// The figures of a run's last line and over all lines; absent where no line has the field, NaN where not finite.
struct RunFigures {
  std::int64_t steps = 0;  // of the last line
  std::optional<double> final_loss, best_loss, validation_loss, seconds, tokens;
  std::optional<double> rate;        // median of tokens_per_second
  std::optional<double> peak_bytes;  // the largest; of tensors on the fullest rank
};

/// The curve of a field, thinned.
struct ReportedCurve {
  std::string field;
  std::vector<std::int64_t> steps;  // of its points; empty: those of the run
  ThinnedSeries points;
  bool is_thinned = false;
  std::vector<std::int64_t> not_finite_at;  // the first of these steps, as many as are drawn
};

struct ReportedRun {
  std::string folder, name;
  RunState state = RunState::stopped;
  RunHeader header;
  RunSettings settings;
  RunFigures figures;
  std::int64_t restarts = 0;            // starts after the first, and steps back within the file
  std::vector<std::int64_t> steps;      // of the points of fields that every line has
  std::vector<double> tokens, seconds;  // at these steps; empty where not every line has them
  std::vector<ReportedCurve> curves;    // in the order of the file
  std::vector<std::string> notes;       // about what is missing or was left out

  /// Steps that the configuration asks for; nothing if it counts epochs or is missing.
  std::optional<std::int64_t> planned() const;
};

/// The output directory that an argument names: the folder, or that of its metrics.jsonl. Throws InputError if it is no
/// folder of a run: it has neither metrics.jsonl nor a run's mark.
std::string run_folder_of(const std::string& argument);

/// Reads a run. `numbers`: about as many as its curves may have together. Changes nothing in the folder. Throws
/// InputError if a file cannot be read.
ReportedRun read_run(const std::string& folder, std::size_t numbers);

/// Names runs by the ends of their folders' paths, as short as no other run has them: "a/run", "b/run".
void name_runs(std::vector<ReportedRun>& runs);

}  // namespace zero
