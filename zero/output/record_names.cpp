#include "zero/output/record_names.h"

#include <iomanip>
#include <regex>

#include "base/log.h"

namespace zero {

std::string event_file_name(std::int64_t time, const std::string& host) {
  return text("events.out.tfevents.", std::setfill('0'), std::setw(10), time, '.', host, ".zero");
}

std::optional<std::int64_t> event_file_time(const std::string& name) {
  static const std::regex form(R"(events\.out\.tfevents\.(\d{10,18})\..+\.zero)");
  std::smatch parts;
  if (!std::regex_match(name, parts, form)) return std::nullopt;
  return std::stoll(parts[1].str());
}

std::string trace_file_name(std::int64_t first_step) { return text("steps-", first_step, ".json"); }

bool is_trace_file(const std::string& name) {
  static const std::regex form(R"(steps-\d{1,18}\.json)");
  return std::regex_match(name, form);
}

bool is_database_file(const std::string& name) {
  static const std::regex form(R"([A-Za-z0-9_-]+\.(db(-wal|-shm|-journal)?|lock))");
  return std::regex_match(name, form);
}

}  // namespace zero
