#include "zero/output/run_header.h"

#include <regex>

namespace zero {

std::string RunHeader::line() const {
  return "# zero_train " + version + ", " + std::to_string(ranks) + (ranks == 1 ? " rank" : " ranks") +
         (start > 1 ? ", start " + std::to_string(start) : "") +
         (steps_before > 0 ? " after step " + std::to_string(steps_before) : "") + "\n";
}

RunHeader run_header_of(std::string_view config) {
  static const std::regex form(
      R"(# zero_train (.{1,200}), (\d{1,7}) ranks?(, start (\d{1,7})( after step (\d{1,15}))?)?)");
  const std::string line(config.substr(0, std::min(config.find('\n'), std::size_t(300))));
  std::smatch found;
  RunHeader header;
  if (!std::regex_match(line, found, form)) return header;
  header.version = found[1];
  header.ranks = std::stoi(found[2]);
  if (found[4].matched) header.start = std::stoi(found[4]);
  if (found[6].matched) header.steps_before = std::stoll(found[6]);
  return header;
}

}  // namespace zero
