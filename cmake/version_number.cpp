#include "cmake/version.h"
#include "zero_commit.h"

namespace zero {

std::string version() { return std::string(ZERO_VERSION) + (*ZERO_COMMIT ? " (commit " ZERO_COMMIT ")" : ""); }

}  // namespace zero
