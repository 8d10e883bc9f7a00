#include "base/error.h"

namespace zero {

void throw_check_failed(const char* file, int line, const char* condition, const std::string& message) {
  throw InternalError(std::string(file) + ":" + std::to_string(line) + ": check failed: " + condition + ": " + message);
}

}  // namespace zero
