#pragma once
// The NCCL library as it was loaded: which one, what it can do beyond the version it was compiled against, its errors.
// Opaque here: NCCL's header stays in the .cpp files.
#include <string>

#include "comm/communicator.h"

struct ncclComm;

namespace zero {

struct NcclLibrary {
  int version = 0;   // 22809 for 2.28.9
  std::string path;  // of the file that was loaded

  static NcclLibrary loaded();
  /// "NCCL 2.28.9 from /usr/lib/libnccl.so.2"
  std::string describe() const;
  bool allows_ranks_on_one_gpu() const { return version >= 23000; }
};

struct NcclLimits {
  int ranks_per_gpu = 1;
};

/// Environment that NCCL reads at its first call; what the user has set stays. Call it before every other function of
/// NCCL.
void prepare_nccl_environment(const NcclLimits& limits);

/// Throws InputError on all ranks, naming the lowest rank that differs, when ranks have loaded different versions.
/// Collective.
void check_same_nccl(const NcclLibrary& library, Communicator& host);

/// Throws Error with NCCL's own words for `code` (an ncclResult_t), unless it is success or "in progress".
void check_nccl(int code, const char* what, ncclComm* comm = nullptr);

}  // namespace zero
