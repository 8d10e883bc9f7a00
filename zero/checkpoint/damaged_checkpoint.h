#pragma once
// DamagedCheckpoint: its contents are not what was written. A file that cannot be read is no such thing (InputError): the
// checkpoint may be whole.
#include "base/error.h"

namespace zero {

/// Names the file, and the checksum, size or number in it that is wrong.
class DamagedCheckpoint : public Error {
 public:
  explicit DamagedCheckpoint(const std::string& message) : Error(message) {}
};

}  // namespace zero
