#pragma once
// Lines of text that the ranks of a group must have alike.
#include <optional>
#include <string>

#include "comm/communicator.h"

namespace zero {

struct LineDifference {
  int rank = 0;              // whose text is not the first rank's
  std::string first, other;  // the first line that differs, there and on `rank`; "nothing more" behind the last one
};

/// None where all ranks have the same text. The same on all of them. Collective.
std::optional<LineDifference> difference_of_lines(Communicator& group, const std::string& mine);

}  // namespace zero
