#include "base/quoted.h"

#include <nlohmann/json.hpp>

namespace zero {

std::string json_quoted(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace zero
