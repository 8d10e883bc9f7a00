#include "comm/agreement/same_lines.h"

#include <sstream>

#include "comm/object_collectives.h"

namespace zero {
namespace {

LineDifference first_difference(const std::string& one, int rank, const std::string& other) {
  std::istringstream a(one), b(other);
  std::string line_a, line_b;
  do {
    if (!std::getline(a, line_a)) line_a = "nothing more";
    if (!std::getline(b, line_b)) line_b = "nothing more";
  } while (line_a == line_b && (a || b));
  return {rank, line_a, line_b};
}

}  // namespace

std::optional<LineDifference> difference_of_lines(Communicator& group, const std::string& mine) {
  const std::vector<std::string> all = all_gather_texts(group, mine);
  for (std::size_t r = 1; r < all.size(); ++r)
    if (all[r] != all[0]) return first_difference(all[0], int(r), all[r]);
  return std::nullopt;
}

}  // namespace zero
