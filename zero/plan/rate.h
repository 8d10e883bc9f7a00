#pragma once
// Rate: a number about a machine, with its source.
#include <string>

namespace zero {

struct Rate {
  double value = 0;
  std::string source;  // "measured here", "data sheet", "assumed: ..."
};

}  // namespace zero
