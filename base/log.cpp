#include "base/log.h"

#include "base/log_output.h"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <iostream>
#include <memory>
#include <string_view>
#include <utility>

namespace zero {
namespace {

spdlog::level::level_enum level_of(LogLevel level) {
  switch (level) {
    case LogLevel::debug:
      return spdlog::level::debug;
    case LogLevel::info:
      return spdlog::level::info;
    case LogLevel::warning:
      return spdlog::level::warn;
    case LogLevel::error:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

constexpr const char* on_output = "zero on standard output";

/// The text for %* in a pattern.
class Opening : public spdlog::custom_flag_formatter {
 public:
  explicit Opening(std::function<std::string()> opening) : opening_(std::move(opening)) {}
  void format(const spdlog::details::log_msg&, const std::tm&, spdlog::memory_buf_t& line) override {
    const std::string text = opening_();
    line.append(text.data(), text.data() + text.size());
  }
  std::unique_ptr<spdlog::custom_flag_formatter> clone() const override { return std::make_unique<Opening>(opening_); }

 private:
  std::function<std::string()> opening_;
};

/// The text for %~ in a pattern: "warning: " or "error: ".
class Mark : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& line, const std::tm&, spdlog::memory_buf_t& out) override {
    const std::string_view mark = line.level == spdlog::level::warn  ? "warning: "
                                  : line.level == spdlog::level::err ? "error: "
                                                                     : "";
    out.append(mark.data(), mark.data() + mark.size());
  }
  std::unique_ptr<spdlog::custom_flag_formatter> clone() const override { return std::make_unique<Mark>(); }
};

std::unique_ptr<spdlog::pattern_formatter> make_formatter(const std::string& pattern,
                                                          std::function<std::string()> opening = {}) {
  auto formatter = std::make_unique<spdlog::pattern_formatter>();
  formatter->add_flag<Mark>('~').add_flag<Opening>('*', std::move(opening)).set_pattern(pattern);
  return formatter;
}

/// The process's loggers. spdlog's registry owns the loggers, so that two copies of this library share them.
std::shared_ptr<spdlog::logger> logger(const char* name = "zero") {
  if (auto known = spdlog::get(name)) return known;
  try {
    auto made = name == on_output ? spdlog::stdout_logger_mt(name) : spdlog::stderr_logger_mt(name);
    made->set_formatter(make_formatter("%~%v"));
    made->flush_on(spdlog::level::debug);
    return made;
  } catch (const spdlog::spdlog_ex&) {  // another thread registered it first
    return spdlog::get(name);
  }
}

}  // namespace

void start_log(int rank, int size, LogLevel level) {
  auto log = logger();
  const bool first = rank == 0;
  log->set_level(first ? level_of(level) : std::max(level_of(level), spdlog::level::warn));
  log->set_formatter(make_formatter(size == 1 || first ? "%~%v" : "%~rank " + std::to_string(rank) + ": %v"));
}

void log_to_standard_output() { logger(on_output)->set_level(logger()->level()); }

void open_log_lines_with(std::function<std::string()> opening) {
  const auto formatter = make_formatter(opening ? "%*%~%v" : "%~%v", opening);
  for (const auto& log : {logger(), spdlog::get(on_output)})
    if (log) log->set_formatter(formatter->clone());
}

void log_line(LogLevel level, const std::string& text) {
  auto log = level < LogLevel::warning ? spdlog::get(on_output) : nullptr;
  if (!log) log = logger();
  if (!log->should_log(level_of(level))) return;
  if (log->name() != on_output) std::cout.flush();  // lines that were printed first are read first
  log->log(level_of(level), "{}", text);            // the text is no format string
}

}  // namespace zero
