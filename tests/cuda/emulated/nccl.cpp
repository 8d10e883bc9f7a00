// NCCL's calls between the emulated devices of a node. Messages are files in memory: a rank writes them when the kernel
// begins in its stream, and the others read when all are there. As in NCCL, a call on a non-blocking communicator
// returns before its kernel is on the stream, and an aborted communicator ends its kernels. No error names a missing
// rank. Each rank adds in the order of ranks.
#include <ATen/ATen.h>
#include <nccl.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>

#include "tests/cuda/emulated/device.h"

namespace files = std::filesystem;
using namespace zero::emulated;

/// A communicator as this rank holds it. Tasks share it, so that it outlives what is queued.
struct EmulatedComm {
  files::path folder;
  int rank = 0, size = 1;
  bool aborted = false;
  std::map<std::string, long> counters;  // messages so far, by their kind
  long issued = 0, ended = 0;            // kernels: one at a time, in the order of the calls, whatever their streams
};

struct ncclComm {
  std::shared_ptr<EmulatedComm> shared = std::make_shared<EmulatedComm>();
  std::vector<std::function<void()>> starting;  // calls that are not on their streams yet
  int polls = 0;                                // before they are
};

namespace {

using Shared = std::shared_ptr<EmulatedComm>;

std::size_t bytes_of(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
    case ncclUint8:
      return 1;
    case ncclFloat16:
    case ncclBfloat16:
      return 2;
    case ncclInt32:
    case ncclUint32:
    case ncclFloat32:
      return 4;
    default:
      return 8;
  }
}

at::ScalarType tensor_type(ncclDataType_t type) {
  switch (type) {
    case ncclFloat16:
      return at::kHalf;
    case ncclBfloat16:
      return at::kBFloat16;
    case ncclFloat32:
      return at::kFloat;
    case ncclFloat64:
      return at::kDouble;
    case ncclInt32:
      return at::kInt;
    case ncclInt64:
      return at::kLong;
    default:
      return at::kByte;
  }
}

/// Whole or not there at all: it is renamed when it is written.
void publish(const Shared& comm, const std::string& name, const void* data, std::size_t bytes) {
  const files::path to = comm->folder / name, part = to.string() + ".part" + std::to_string(comm->rank);
  std::ofstream(part, std::ios::binary).write(static_cast<const char*>(data), static_cast<std::streamsize>(bytes));
  files::rename(part, to);
}

bool is_there(const Shared& comm, const std::string& name) {
  return ::access((comm->folder / name).c_str(), F_OK) == 0;
}

void read(const Shared& comm, const std::string& name, void* to, std::size_t at, std::size_t bytes) {
  std::ifstream file(comm->folder / name, std::ios::binary);
  file.seekg(static_cast<std::streamoff>(at));
  file.read(static_cast<char*>(to), static_cast<std::streamsize>(bytes));
  if (file.gcount() != static_cast<std::streamsize>(bytes))
    not_emulated(("ranks disagree about the size of " + name).c_str());
}

struct Message {
  const void* send = nullptr;
  void* recv = nullptr;
  int peer = 0;
  std::size_t bytes = 0;
};

/// The calls of a thread between ncclGroupStart and ncclGroupEnd.
struct Group {
  int depth = 0;
  ncclComm* comm = nullptr;
  cudaStream_t stream = nullptr;
  std::vector<Message> messages;
  std::vector<std::function<void()>> starts;
};
thread_local Group group;

/// The kernel of one collective: `own` is this rank's input, `all_there` may use everybody's.
void queue_collective(const Shared& comm, cudaStream_t stream, const void* own, std::size_t bytes,
                      std::function<void(const std::vector<std::string>&)> all_there) {
  const long number = comm->counters["collective"]++, turn = comm->issued++;
  const auto name = [number](int rank, long back = 0) {
    return "c" + std::to_string(number - back) + "-" + std::to_string(rank);
  };
  MemoryMap::get().check_device(own, bytes, "what a collective reads");
  Scheduler::get().enqueue(stream, {[=] {
                                      if (!comm->aborted) publish(comm, name(comm->rank), own, bytes);
                                    },
                                    [=] { return comm->aborted || comm->ended == turn; }});
  std::vector<std::string> names;
  for (int r = 0; r < comm->size; ++r) names.push_back(name(r));
  Scheduler::get().enqueue(stream, {[=] {
                                      if (comm->aborted) return;
                                      all_there(names);
                                      // All have come to this one, so nobody reads the one before any more.
                                      std::error_code ignored;
                                      files::remove(comm->folder / name(comm->rank, 1), ignored);
                                      ++comm->ended;
                                    },
                                    [=] {
                                      for (const std::string& each : names)
                                        if (!comm->aborted && !is_there(comm, each)) return false;
                                      return true;
                                    }});
}

void queue_messages(const Shared& comm, cudaStream_t stream, const std::vector<Message>& messages) {
  struct Named {
    Message message;
    std::string name;
  };
  std::vector<Named> named;
  const long turn = comm->issued++;
  for (const Message& m : messages) {
    const std::string pair = m.send ? std::to_string(comm->rank) + "-" + std::to_string(m.peer)
                                    : std::to_string(m.peer) + "-" + std::to_string(comm->rank);
    named.push_back({m, "p" + pair + "-" + std::to_string(comm->counters[(m.send ? "to " : "from ") + pair]++)});
    MemoryMap::get().check_device(m.send ? m.send : m.recv, m.bytes, "a message");
  }
  Scheduler::get().enqueue(stream, {[=] {
                                      for (const Named& n : named)
                                        if (n.message.send && !comm->aborted)
                                          publish(comm, n.name, n.message.send, n.message.bytes);
                                    },
                                    [=] { return comm->aborted || comm->ended == turn; }});
  Scheduler::get().enqueue(stream, {[=] {
                                      if (comm->aborted) return;
                                      for (const Named& n : named)
                                        if (n.message.recv) {
                                          read(comm, n.name, n.message.recv, 0, n.message.bytes);
                                          files::remove(comm->folder / n.name);
                                        }
                                      ++comm->ended;
                                    },
                                    [=] {
                                      for (const Named& n : named)
                                        if (n.message.recv && !comm->aborted && !is_there(comm, n.name)) return false;
                                      return true;
                                    }});
}

/// The call is on its stream after a few polls.
ncclResult_t start(ncclComm* comm, std::function<void()> how) {
  comm->starting.push_back(std::move(how));
  comm->polls = 2;
  return ncclInProgress;
}

ncclResult_t issue(ncclComm* comm, cudaStream_t stream, std::function<void()> how) {
  if (group.depth == 0) return start(comm, std::move(how));
  group.comm = comm;
  group.stream = stream;
  group.starts.push_back(std::move(how));
  return ncclSuccess;
}

at::Tensor sum_of(const Shared& comm, const std::vector<std::string>& names, std::size_t at, std::size_t count,
                  ncclDataType_t type) {
  at::Tensor sum;
  for (const std::string& name : names) {
    const at::Tensor one = at::empty({static_cast<std::int64_t>(count)}, tensor_type(type));
    read(comm, name, one.data_ptr(), at * bytes_of(type), count * bytes_of(type));
    sum = sum.defined() ? sum + one : one;
  }
  return sum;
}

}  // namespace

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  return *version = static_cast<int>(environment("ZERO_EMULATED_NCCL", 22809)), ncclSuccess;
}
const char* ncclGetErrorString(ncclResult_t result) {
  return result == ncclSuccess ? "no error" : result == ncclInProgress ? "in progress" : "emulated error";
}
const char* ncclGetLastError(ncclComm_t) { return ""; }

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  std::memset(id, 0, sizeof *id);
  std::random_device random;
  std::snprintf(id->internal, sizeof id->internal, "/dev/shm/zero-emulated-%u-%08x%08x", unsigned(::getuid()), random(),
                random());
  return files::create_directory(id->internal), ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int size, ncclUniqueId id, int rank, ncclConfig_t* config) {
  if (config->blocking != 0) not_emulated("a blocking communicator");
  *comm = new ncclComm;
  *(*comm)->shared = {id.internal, rank, size, false, {}};
  publish((*comm)->shared, "joined-" + std::to_string(rank), "", 0);
  return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state) {
  *state = ncclInProgress;
  for (int r = 0; r < comm->shared->size; ++r)
    if (!is_there(comm->shared, "joined-" + std::to_string(r))) return ncclSuccess;
  if (comm->polls-- > 0) return ncclSuccess;
  for (const auto& how : std::exchange(comm->starting, {})) how();
  return *state = ncclSuccess, ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  for (const auto& how : std::exchange(comm->starting, {})) how();
  return Scheduler::get().synchronize(), ncclSuccess;
}
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  const Shared shared = comm->shared;
  delete comm;
  publish(shared, "left-" + std::to_string(shared->rank), "", 0);
  for (int r = 0; r < shared->size; ++r)
    if (!is_there(shared, "left-" + std::to_string(r))) return ncclSuccess;
  std::error_code ignored;
  files::remove_all(shared->folder, ignored);
  return ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t comm) { return comm->shared->aborted = true, ncclCommDestroy(comm); }

ncclResult_t ncclMemAlloc(void** begin, size_t bytes) {
  return cudaMalloc(begin, bytes) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}
ncclResult_t ncclMemFree(void* begin) { return cudaFree(begin) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError; }
ncclResult_t ncclCommRegister(const ncclComm_t, void* begin, size_t, void** handle) {
  return *handle = begin, ncclSuccess;
}
ncclResult_t ncclCommDeregister(const ncclComm_t, void*) { return ncclSuccess; }
ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void* begin, size_t, ncclWindow_t* window, int) {
  return start(comm, [=] { *window = static_cast<ncclWindow_t>(begin); });
}
ncclResult_t ncclCommWindowDeregister(ncclComm_t, ncclWindow_t) { return ncclSuccess; }

ncclResult_t ncclGroupStart() { return ++group.depth, ncclSuccess; }
ncclResult_t ncclGroupEnd() {
  if (--group.depth > 0) return ncclSuccess;
  Group ended = std::exchange(group, {});
  if (!ended.comm) return ncclSuccess;
  return start(ended.comm, [shared = ended.comm->shared, ended] {
    if (!ended.messages.empty()) queue_messages(shared, ended.stream, ended.messages);
    for (const auto& how : ended.starts) how();
  });
}

ncclResult_t ncclAllGather(const void* send, void* recv, size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream) {
  const std::size_t part = count * bytes_of(type);
  return issue(comm, stream, [=, shared = comm->shared] {
    queue_collective(shared, stream, send, part, [=](const std::vector<std::string>& names) {
      for (std::size_t r = 0; r < names.size(); ++r)
        read(shared, names[r], static_cast<char*>(recv) + r * part, 0, part);
    });
  });
}
ncclResult_t ncclAllReduce(const void* send, void* recv, size_t count, ncclDataType_t type, ncclRedOp_t,
                           ncclComm_t comm, cudaStream_t stream) {
  return issue(comm, stream, [=, shared = comm->shared] {
    queue_collective(shared, stream, send, count * bytes_of(type), [=](const std::vector<std::string>& names) {
      std::memcpy(recv, sum_of(shared, names, 0, count, type).data_ptr(), count * bytes_of(type));
    });
  });
}
ncclResult_t ncclReduceScatter(const void* send, void* recv, size_t count, ncclDataType_t type, ncclRedOp_t,
                               ncclComm_t comm, cudaStream_t stream) {
  return issue(comm, stream, [=, shared = comm->shared] {
    queue_collective(
        shared, stream, send, count * bytes_of(type) * static_cast<std::size_t>(shared->size),
        [=](const std::vector<std::string>& names) {
          std::memcpy(recv,
                      sum_of(shared, names, count * static_cast<std::size_t>(shared->rank), count, type).data_ptr(),
                      count * bytes_of(type));
        });
  });
}
ncclResult_t ncclBroadcast(const void* send, void* recv, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                           cudaStream_t stream) {
  const std::size_t bytes = count * bytes_of(type);
  return issue(comm, stream, [=, shared = comm->shared] {
    queue_collective(shared, stream, send, shared->rank == root ? bytes : 0,
                     [=](const std::vector<std::string>& names) {
                       if (shared->rank != root || send != recv)
                         read(shared, names[static_cast<std::size_t>(root)], recv, 0, bytes);
                     });
  });
}
ncclResult_t ncclSend(const void* send, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  if (group.depth == 0) not_emulated("a message outside a group");
  group.comm = comm;
  group.stream = stream;
  group.messages.push_back({send, nullptr, peer, count * bytes_of(type)});
  return ncclSuccess;
}
ncclResult_t ncclRecv(void* recv, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream) {
  if (group.depth == 0) not_emulated("a message outside a group");
  group.comm = comm;
  group.stream = stream;
  group.messages.push_back({nullptr, recv, peer, count * bytes_of(type)});
  return ncclSuccess;
}

}  // extern "C"
