#include "zero/core/buffers/shard_lease.h"

#include <string>

#include "base/log.h"

namespace zero {

ShardLease::~ShardLease() noexcept(false) {
  try {
    home_.release(changes_);
  } catch (const std::exception& error) {
    if (std::uncaught_exceptions() == exceptions_) throw;
    log_error(std::string("beside what went wrong before: ") + error.what());
  }
}

}  // namespace zero
