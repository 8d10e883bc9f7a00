#pragma once
// DamagedCheckpoint: the contents of a checkpoint differ from those written. An unreadable file throws InputError
// instead: the checkpoint may still be whole.
#include "base/error.h"

namespace zero {

/// Names the file, and the wrong checksum, size or number in it.
class DamagedCheckpoint : public Error {
 public:
  explicit DamagedCheckpoint(const std::string& message) : Error(message) {}
};

}  // namespace zero
