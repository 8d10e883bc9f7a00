#include "offload/disk/block_io.h"

namespace zero {

std::unique_ptr<BlockIo> make_uring_io(const HostArena&, int, std::string* reason) {
  *reason = "built without liburing";
  return nullptr;
}

}  // namespace zero
