#pragma once
// DamagedCheckpoint: thrown if the contents of a checkpoint differ from those written. An unreadable file throws
// InputError instead, since the checkpoint may still be intact.
#include "base/error.h"

namespace zero {

/// The message names the file, and the wrong checksum, size or number in it.
class DamagedCheckpoint : public Error {
 public:
  explicit DamagedCheckpoint(const std::string& message) : Error(message) {}
};

}  // namespace zero
