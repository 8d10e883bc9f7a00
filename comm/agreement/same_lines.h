#pragma once
// Checks lines of text that the ranks of a group must share.
#include <optional>
#include <string>

#include "comm/communicator.h"

namespace zero {

struct LineDifference {
  int rank = 0;              // a rank whose text differs from the first rank's
  std::string first, other;  // the first differing line, on the first rank and on `rank`; "nothing more" past the end
};

/// Returns nothing if all ranks have the same text. All ranks return the same result. Collective.
std::optional<LineDifference> difference_of_lines(Communicator& group, const std::string& mine);

}  // namespace zero
