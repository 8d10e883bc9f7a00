#include "comm/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>

namespace zero {
namespace {

spdlog::level::level_enum level_of(LogLevel level) {
  switch (level) {
    case LogLevel::debug: return spdlog::level::debug;
    case LogLevel::info: return spdlog::level::info;
    case LogLevel::warning: return spdlog::level::warn;
    case LogLevel::error: return spdlog::level::err;
  }
  return spdlog::level::info;
}

/// The process's logger: spdlog's registry owns it, so that libraries linked twice still share one.
std::shared_ptr<spdlog::logger> logger() {
  static const char* const name = "zero";
  if (auto known = spdlog::get(name)) return known;
  try {
    auto made = spdlog::stderr_logger_mt(name);
    made->set_pattern("%v");
    made->flush_on(spdlog::level::debug);
    return made;
  } catch (const spdlog::spdlog_ex&) {  // another thread was faster
    return spdlog::get(name);
  }
}

}  // namespace

void start_log(int rank, int size, LogLevel level) {
  auto log = logger();
  const bool first = rank == 0;
  log->set_level(first ? level_of(level) : std::max(level_of(level), spdlog::level::warn));
  log->set_pattern(size == 1 || first ? "%v" : "[rank " + std::to_string(rank) + "] %v");
}

void log_line(LogLevel level, const std::string& text) {
  auto log = logger();
  if (!log->should_log(level_of(level))) return;
  // The text goes in as an argument: braces in it are not a format.
  const char* mark = level == LogLevel::warning ? "warning: " : level == LogLevel::error ? "error: " : "";
  log->log(level_of(level), "{}{}", mark, text);
}

}  // namespace zero
