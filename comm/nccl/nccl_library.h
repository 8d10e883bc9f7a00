#pragma once
// The loaded NCCL library: its version, path and errors, and features that are newer than the version compiled against.
// Only .cpp files include NCCL's header.
#include <string>

#include "comm/communicator.h"

struct ncclComm;

namespace zero {

struct NcclLibrary {
  int version = 0;   // 22809 for 2.28.9
  std::string path;  // of the loaded file

  static NcclLibrary loaded();
  /// "NCCL 2.28.9 from /usr/lib/libnccl.so.2"
  std::string describe() const;
  bool allows_ranks_on_one_gpu() const { return version >= 23000; }
};

struct NcclLimits {
  int ranks_per_gpu = 1;
};

/// Sets the environment variables that NCCL reads at its first call. Variables that the user has set are kept. Call
/// this before any NCCL function.
void prepare_nccl_environment(const NcclLimits& limits);

/// Throws InputError on all ranks if they have loaded different versions. The message names the lowest rank that
/// differs. Collective.
void check_same_nccl(const NcclLibrary& library, Communicator& host);

/// Throws Error with NCCL's own message for `code` (an ncclResult_t), unless it is success or "in progress".
void check_nccl(int code, const char* what, ncclComm* comm = nullptr);

}  // namespace zero
