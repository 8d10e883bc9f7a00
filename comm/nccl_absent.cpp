#include "comm/error.h"
#include "comm/nccl.h"

namespace zero {

std::unique_ptr<Communicator> make_nccl_communicator(Communicator&, int) {
  throw InputError("this build has no NCCL; build the cuda preset");
}

}  // namespace zero
