#include "base/byte_count.h"

#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <string_view>

namespace zero {

std::string bytes_text(std::int64_t bytes) {
  constexpr std::array<const char*, 4> units{"KiB", "MiB", "GiB", "TiB"};
  double number = double(bytes) / 1024;
  std::size_t unit = 0;
  for (; unit + 1 < units.size() && std::abs(number) >= 1000; ++unit) number /= 1024;
  char words[48];
  std::snprintf(words, sizeof words, unit < 2 ? "%.1f %s" : "%.2f %s", number, units[unit]);
  return words;
}

std::optional<std::int64_t> bytes_of_text(const std::string& words) {
  double number = 0;
  const char* const end = words.data() + words.size();
  auto [rest, error] = std::from_chars(words.data(), end, number, std::chars_format::fixed);
  if (error != std::errc{} || !(number > 0)) return std::nullopt;
  while (rest < end && *rest == ' ') ++rest;
  std::string unit(rest, end);
  for (char& c : unit) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  constexpr std::string_view letters = "kmgt";
  if (unit.empty()) return std::nullopt;
  if (unit != "b") {
    const std::size_t power = letters.find(unit[0]);
    const std::string ending = unit.substr(1);
    if (power == letters.npos || (!ending.empty() && ending != "b" && ending != "i" && ending != "ib"))
      return std::nullopt;
    number *= std::pow(ending == "b" ? 1000.0 : 1024.0, double(power + 1));
  }
  if (!(number >= 1 && number < std::ldexp(1.0, 62))) return std::nullopt;
  return std::int64_t(number);
}

}  // namespace zero
