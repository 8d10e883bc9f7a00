#include "zero/data/examples/example_line.h"

#include "base/log.h"

namespace zero {
namespace {

constexpr const char* blanks = " \t\r\n";

}  // namespace

void refuse_list(std::string_view line, const std::string& place) {
  const std::size_t first = line.find_first_not_of(blanks);
  if (first != line.npos && line[first] == '[')
    throw InputError(
        text(place,
             ": begins a list, and an example is a JSON object; a file that is one list of examples is called .json"));
}

std::string remedy_of_broken(std::string_view line) {
  const std::size_t first = line.find_first_not_of(blanks), last = line.find_last_not_of(blanks);
  if (first != line.npos && first == last && line[first] == '{')
    return "; an example is one line, or an object of one list, [{...}, {...}], in a .json file";
  return "; mend the example, or take it out";
}

}  // namespace zero
