#pragma once
// Logging facade. Only log.cpp includes spdlog. It never includes LibTorch, because the two carry different versions of
// fmt.
#include <sstream>
#include <string>

namespace zero {

enum class LogLevel { debug, info, warning, error };

/// Sets up the process's log. Rank 0 prints everything from `level` on. Other ranks print warnings and errors, each
/// line labelled with their rank. Lines go to standard error, since standard output is for results.
/// log_to_standard_output() (base/log_output.h) redirects lines below a warning to standard output.
void start_log(int rank, int size, LogLevel level = LogLevel::info);

/// Prints one formatted line. Before start_log(), lines go to standard error without a label.
void log_line(LogLevel level, const std::string& text);

/// Streams the parts into one line: log_info("step ", 3, " of ", 10).
template <class... Parts>
void log_info(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  log_line(LogLevel::info, out.str());
}
template <class... Parts>
void log_warning(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  log_line(LogLevel::warning, out.str());
}
template <class... Parts>
void log_error(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  log_line(LogLevel::error, out.str());
}

/// The parts as one string, for error messages.
template <class... Parts>
std::string text(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

}  // namespace zero
