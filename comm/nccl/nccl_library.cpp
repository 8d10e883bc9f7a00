#include "comm/nccl/nccl_library.h"

#include <dlfcn.h>
#include <nccl.h>

#include <cstdlib>

#include "base/error.h"
#include "base/log.h"
#include "comm/object_collectives.h"

namespace zero {
namespace {

std::string version_text(int version) { return text(version / 10000, '.', version / 100 % 100, '.', version % 100); }

void set_unless_set(const char* name, const char* value) { setenv(name, value, 0); }

}  // namespace

NcclLibrary NcclLibrary::loaded() {
  NcclLibrary library;
  check_nccl(ncclGetVersion(&library.version), "ncclGetVersion");
  Dl_info where{};
  if (dladdr(reinterpret_cast<void*>(&ncclGetVersion), &where) && where.dli_fname) library.path = where.dli_fname;
  return library;
}

std::string NcclLibrary::describe() const {
  return text("NCCL ", version_text(version), " from ", path.empty() ? "?" : path);
}

void prepare_nccl_environment(const NcclLimits& limits) {
  // Without it, kernels of two communicators on one device can deadlock.
  set_unless_set("NCCL_LAUNCH_ORDER_IMPLICIT", "1");
  if (limits.ranks_per_gpu <= 1) return;
  set_unless_set("NCCL_MULTI_RANK_GPU_ENABLE", "1");
  set_unless_set("NCCL_NVLS_ENABLE", "0");
}

void check_same_nccl(const NcclLibrary& library, Communicator& host) {
  const std::vector<std::int64_t> versions = all_gather_number(host, library.version);
  for (std::size_t r = 1; r < versions.size(); ++r)
    if (versions[r] != versions[0])
      throw InputError(text("rank 0 has loaded NCCL ", version_text(int(versions[0])), " and rank ", r, " NCCL ",
                            version_text(int(versions[r])),
                            ": all ranks need the same; look at LD_LIBRARY_PATH and LD_PRELOAD on each node"));
}

void check_nccl(int code, const char* what, ncclComm* comm) {
  if (code == ncclSuccess || code == ncclInProgress) return;
  const char* detail = ncclGetLastError(comm);
  throw Error(text(what, ": ", ncclGetErrorString(static_cast<ncclResult_t>(code)), detail && *detail ? ": " : "",
                   detail ? detail : "", " (NCCL_DEBUG=WARN tells more)"));
}

}  // namespace zero
