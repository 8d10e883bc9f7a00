#pragma once
// ReportPage: runs as one HTML file that needs no other file and no network.
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "zero/report/reported_run.h"

namespace zero {

/// The texts of a page that do not come from its runs.
struct PageFacts {
  std::string version;                 // of the program
  std::string made;                    // the time at which it was made, for people
  std::optional<int> refresh_seconds;  // the time after which the page reloads itself; nothing: never
};

/// A run's part of a page of so many runs. The page then stays below 5 MB.
ReportRoom page_room(std::size_t runs);

/// Returns the HTML file. Names and settings are data in a script, and no character in them can end the script. The
/// page shows them as text.
std::string report_page(const std::vector<ReportedRun>& runs, const PageFacts& facts);

/// True if a file's beginning is that of a report page. Only such a file may be replaced.
bool is_report_page(std::string_view beginning);

}  // namespace zero
