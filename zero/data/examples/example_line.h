#pragma once
// The JSON text of one example: remedies for text that is none. No LibTorch.
#include <string>
#include <string_view>

#include "base/error.h"

namespace zero {

/// Throws InputError for a text that begins a list: its file is one JSON list under the name of another kind.
void refuse_list(std::string_view line, const std::string& place);

/// The end of a message about broken JSON, which says what to do.
std::string remedy_of_broken(std::string_view line);

/// Calls `parse`, which returns the parsed text or throws InputError for broken JSON. Adds a remedy to its messages.
template <class Parse>
auto parsed_line(std::string_view line, const std::string& place, const Parse& parse) {
  refuse_list(line, place);
  try {
    return parse();
  } catch (const InputError& error) {
    throw InputError(error.what() + remedy_of_broken(line));
  }
}

}  // namespace zero
