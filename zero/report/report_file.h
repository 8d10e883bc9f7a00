#pragma once
// ReportFile: the file of a report, written once, or repeatedly while its runs continue.
#include <functional>
#include <string>
#include <vector>

namespace zero {

struct ReportRequest {
  std::vector<std::string> runs;  // as named by the user
  std::string out;
  std::string version;  // of the program
};

/// Writes the report and prints its name. A reader sees the old file or the new one. Throws InputError if an argument
/// is not a run, or if `out` is a file but not a report. Throws Error if the report cannot be written.
void write_report(const ReportRequest& request);

/// Writes the report every few seconds until no run is running or `stop` returns true. Then writes it once more, as a
/// page that no longer reloads itself. Spends at most a twentieth of a core. A failed write logs one warning and is
/// tried again. Throws Error if the last write fails. `wait(seconds)` pauses, and may return early when `stop` becomes
/// true.
void write_live_report(const ReportRequest& request, const std::function<bool()>& stop,
                       const std::function<void(double)>& wait);

}  // namespace zero
