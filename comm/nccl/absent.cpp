#include "base/error.h"
#include "comm/nccl/nccl_communicator.h"

namespace zero {

std::unique_ptr<Communicator> make_nccl_communicator(Communicator&, int, const NcclOptions&) {
  throw InputError("this build has no NCCL; build the cuda preset");
}

bool nccl_allows_ranks_on_one_gpu() { return false; }

std::string nccl_description() { return ""; }

}  // namespace zero
