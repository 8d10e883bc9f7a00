#pragma once
// ReportFile: the file of a report, written once or again and again while its runs go on.
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
/// is no run, or if `out` is a file that is no report; Error if it cannot be written.
void write_report(const ReportRequest& request);

/// Writes the report every few seconds until no run is running or `stop` says so, and then once more, as a page that no
/// longer loads itself again. Spends at most a twentieth of a core. A write that fails costs one warning and is tried
/// again; Error if the last one fails. `wait(seconds)` pauses, and may return early when `stop` becomes true.
void write_live_report(const ReportRequest& request, const std::function<bool()>& stop,
                       const std::function<void(double)>& wait);

}  // namespace zero
