#pragma once
// ReportPage: runs as one HTML file that needs no other file and no network.
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "zero/report/reported_run.h"

namespace zero {

/// The words of a page that are not of its runs.
struct PageFacts {
  std::string version;                 // of the program
  std::string made;                    // when, for people
  std::optional<int> refresh_seconds;  // after which the page loads itself again; nothing: never
};

/// The numbers of curves that all runs of a page may have together, so that it stays below 5 MB.
constexpr std::size_t page_numbers = 600'000;

/// The file. Names and settings are data of a script, in which no character can end it, and become text of the page.
std::string report_page(const std::vector<ReportedRun>& runs, const PageFacts& facts);

/// True for a text that begins as a page does. Only such a file may be replaced.
bool is_report_page(std::string_view beginning);

}  // namespace zero
