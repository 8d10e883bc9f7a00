#include "models/formats/gguf/gguf_keys.h"

#include <cmath>

#include "base/error.h"
#include "base/log.h"

namespace zero {

std::optional<std::int64_t> GgufKeys::integer(const std::string& key) {
  pass_over(key);
  return file_.integer(prefix_ + key);
}

std::optional<double> GgufKeys::number(const std::string& key) {
  pass_over(key);
  return file_.number(prefix_ + key);
}

std::optional<std::string> GgufKeys::word(const std::string& key) {
  pass_over(key);
  return file_.word(prefix_ + key);
}

void GgufKeys::expect(const std::string& key, std::int64_t value) {
  if (const auto found = integer(key); found && *found != value)
    refuse(key, std::to_string(*found), std::to_string(value));
}

void GgufKeys::expect(const std::string& key, double value) {
  if (const auto found = number(key); found && std::fabs(*found - value) > 1e-6 * std::fabs(value))
    refuse(key, text(*found), text(value));
}

void GgufKeys::close() const {
  for (const auto& [key, value] : file_.metadata())
    if (key.starts_with(prefix_) && !asked_.contains(key))
      throw InputError(text(file_.path(), ": ", key, " is not known here, and would change the model's results"));
}

void GgufKeys::refuse(const std::string& key, const std::string& value, const std::string& expected) const {
  throw InputError(text(file_.path(), ": ", prefix_, key, " = ", value, ", where only ", expected, " is done"));
}

}  // namespace zero
