#include "comm/log.h"

#include "comm/log_output.h"

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

constexpr const char* on_output = "zero on standard output";

/// The process's loggers: spdlog's registry owns them, so that libraries linked twice still share them.
std::shared_ptr<spdlog::logger> logger(const char* name = "zero") {
  if (auto known = spdlog::get(name)) return known;
  try {
    auto made = name == on_output ? spdlog::stdout_logger_mt(name) : spdlog::stderr_logger_mt(name);
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

void log_to_standard_output() { logger(on_output)->set_level(logger()->level()); }

void log_line(LogLevel level, const std::string& text) {
  auto log = level < LogLevel::warning ? spdlog::get(on_output) : nullptr;
  if (!log) log = logger();
  if (!log->should_log(level_of(level))) return;
  // The text goes in as an argument: braces in it are not a format.
  const char* mark = level == LogLevel::warning ? "warning: " : level == LogLevel::error ? "error: " : "";
  log->log(level_of(level), "{}{}", mark, text);
}

}  // namespace zero
