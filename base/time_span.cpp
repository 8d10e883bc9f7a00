#include "base/time_span.h"

#include <regex>

namespace zero {

std::optional<std::chrono::seconds> time_span_of(const std::string& text) {
  static const std::regex form(R"((?:(?:(\d{1,6})-([01]\d|2[0-3])|(\d{1,6})):([0-5]\d)|(\d{1,6})):([0-5]\d))");
  std::smatch part;
  if (!std::regex_match(text, part, form)) return std::nullopt;
  const auto number = [&](int i) { return part[std::size_t(i)].matched ? std::stoll(part[std::size_t(i)]) : 0; };
  const std::int64_t hours = number(1) * 24 + number(2) + number(3), minutes = number(4) + number(5);
  return std::chrono::seconds(hours * 3600 + minutes * 60 + number(6));
}

}  // namespace zero
