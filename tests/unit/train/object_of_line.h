#pragma once
// A line of metrics.jsonl, to compare with that of another run.
#include <nlohmann/json.hpp>
#include <string>

#include "zero/train/metrics.h"

namespace zero::testing {

/// The line's object without what no two runs share: times, rates, and figures of memory and load.
inline nlohmann::json object_of_line(const std::string& line) {
  nlohmann::json object = nlohmann::json::parse(line);
  for (const char* key : {"seconds", "tokens_per_second", "peak_bytes", "time", "host_available_bytes",
                          "host_used_bytes", "load_average"})
    object.erase(key);
  std::erase_if(object.get_ref<nlohmann::json::object_t&>(), [](const auto& field) { return is_part(field.first); });
  return object;
}

}  // namespace zero::testing
