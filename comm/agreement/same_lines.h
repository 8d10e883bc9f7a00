#pragma once
// Checks lines of text that the ranks of a group must share.
#include <optional>
#include <string>

#include "comm/communicator.h"

namespace zero {

struct LineDifference {
  int rank = 0;              // a rank whose text differs from the first rank's
  std::string first, other;  // the first line that differs, there and on `rank`; "nothing more" behind the last one
};

/// Returns nothing if all ranks have the same text. The result is the same on all of them. Collective.
std::optional<LineDifference> difference_of_lines(Communicator& group, const std::string& mine);

}  // namespace zero
