#include "comm/mpi/point_to_point.h"

#include <mpi.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/log.h"

namespace zero {
namespace {

constexpr std::size_t longest = std::size_t{1} << 30;  // bytes per MPI message: MPI counts with int

/// A message's MPI tag identifies its call in the 15 bits that MPI guarantees. Kind, phase and data type can be
/// decoded. Unit and group are hashed into the rest, at least one bit, and only compared.
class CallMark {
 public:
  CallMark(const CallRecord& call, int largest) {
    // Send and receive are one kind, so both ends match.
    const CollectiveKind kind = call.kind == CollectiveKind::recv ? CollectiveKind::send : call.kind;
    const int words = (int(kind) * phases + int(call.tag.phase)) * types + int(call.type);
    // Multiplicative hashes, so that neighbouring numbers differ even in the first bit.
    constexpr std::uint32_t unit_turn = 0x9E3779B1, group_turn = 0xC13FA9A9;
    const std::uint32_t turned =
        std::uint32_t(call.tag.unit + 1) * unit_turn + std::uint32_t(call.tag.group + 1) * group_turn;
    const int places = (largest + 1) / readable;
    tag_ = int(std::uint64_t(turned) * std::uint64_t(places) >> 32) * readable + words;
  }
  int tag() const { return tag_; }

  /// For example "all_gather of float (forward)".
  static std::string describe(int tag) {
    const int words = tag % readable;
    CallRecord call;
    call.kind = CollectiveKind(words / types / phases);
    call.type = at::ScalarType(words % types);
    return text(name_of(call.kind), call.has_data() ? " of " + call.type_name() : "", " (",
                name_of(Phase(words / types % phases)), ")");
  }

 private:
  static constexpr int types = 64, phases = 16, readable = 16 * phases * types;
  static_assert(int(CollectiveKind::split) < 16 && int(Phase::other) < phases &&
                int(at::ScalarType::NumOptions) <= types);
  int tag_ = 0;
};

struct Pending {
  int peer;
  bool is_recv;
  std::size_t bytes;
};

struct Lane {
  std::vector<MPI_Request> requests;
  std::vector<Pending> pending;
  std::vector<MPI_Status> statuses;
  void clear() {
    requests.clear();
    pending.clear();
  }
};

}  // namespace

void check_mpi(int code, const char* what) {
  if (code == MPI_SUCCESS) return;
  char words[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, words, &length);
  throw Error(text(what, " failed: ", std::string(words, length)));
}

struct PointToPoint::Impl {
  MPI_Comm comm = MPI_COMM_NULL;
  std::chrono::duration<double> deadline{};
  int rank = 0;
  int size = 1;
  int largest_tag = 32767;
  std::array<Lane, outbox + 1> lanes;
  CallRecord call;
  int tag = 0;  // of its messages

  /// A rank of the group in the words of messages.
  struct Identity {
    int named_rank;
    std::array<char, 60> node;
    std::string node_name() const { return node.data(); }
  };
  std::vector<Identity> identities;
  bool several_nodes = false;

  void learn_names(std::optional<int> named_rank) {
    Identity own{};
    MPI_Comm_rank(MPI_COMM_WORLD, &own.named_rank);
    own.named_rank = named_rank.value_or(own.named_rank);
    gethostname(own.node.data(), own.node.size() - 1);
    identities.resize(static_cast<std::size_t>(size));
    check_mpi(MPI_Allgather(&own, sizeof own, MPI_BYTE, identities.data(), sizeof own, MPI_BYTE, comm),
              "MPI_Allgather");
    several_nodes =
        std::any_of(identities.begin(), identities.end(), [&](const Identity& i) { return i.node != own.node; });
  }

  std::string name(int r) const {
    const Identity& identity = identities[static_cast<std::size_t>(r)];
    return text("rank ", identity.named_rank, several_nodes ? " on node " + identity.node_name() : "");
  }

  /// Cancels pending receives, so that MPI stops writing into memory that may be freed.
  [[noreturn]] void give_up(Lane& lane) {
    std::vector<int> missing;
    for (std::size_t i = 0; i < lane.requests.size(); ++i) {
      if (lane.requests[i] == MPI_REQUEST_NULL) continue;
      int done = 0;
      MPI_Request_get_status(lane.requests[i], &done, MPI_STATUS_IGNORE);
      if (done) continue;
      missing.push_back(lane.pending[i].peer);
      if (lane.pending[i].is_recv) MPI_Cancel(&lane.requests[i]);
      MPI_Request_free(&lane.requests[i]);
    }
    std::sort(missing.begin(), missing.end());
    missing.erase(std::unique(missing.begin(), missing.end()), missing.end());
    std::string names;
    for (int r : missing) names += text(names.empty() ? "" : ", ", name(r));
    lane.clear();
    throw Error(text("deadline of ", deadline.count(), " s passed in ", call.describe(), " on ", name(rank), " among ",
                     size, " ranks: no answer from ", names));
  }

  // A rank's messages arrive in order, whatever their tags. A message with another tag shows that the rank made another
  // call.
  void check_received(Lane& lane) {
    for (std::size_t i = 0; i < lane.pending.size(); ++i) {
      const Pending& p = lane.pending[i];
      if (lane.statuses[i].MPI_ERROR == MPI_ERR_PENDING) continue;
      if (p.is_recv && lane.statuses[i].MPI_TAG != tag)
        throw Error(
            describe_mismatch(name(rank), call.describe(), name(p.peer), CallMark::describe(lane.statuses[i].MPI_TAG)));
      check_mpi(lane.statuses[i].MPI_ERROR, call.describe().c_str());
      int count = 0;
      if (p.is_recv) MPI_Get_count(&lane.statuses[i], MPI_BYTE, &count);
      if (p.is_recv && static_cast<std::size_t>(count) != p.bytes)
        throw Error(describe_mismatch(name(rank), text(call.describe(), " and expects ", p.bytes, " bytes"),
                                      name(p.peer), text(CallMark::describe(tag), " and sent ", count)));
    }
  }
};

PointToPoint::PointToPoint(int handle, const MpiOptions& options) : impl_(std::make_unique<Impl>()) {
  impl_->comm = MPI_Comm_f2c(handle);
  impl_->deadline = options.deadline;
  check_mpi(MPI_Comm_set_errhandler(impl_->comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  check_mpi(MPI_Comm_rank(impl_->comm, &impl_->rank), "MPI_Comm_rank");
  check_mpi(MPI_Comm_size(impl_->comm, &impl_->size), "MPI_Comm_size");
  int* largest = nullptr;
  int known = 0;
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &largest, &known);  // set on the world only; a split group lacks it
  if (known) impl_->largest_tag = std::min(*largest, 1 << 30);
  impl_->learn_names(options.named_rank);
}

PointToPoint::~PointToPoint() {
  int over = 0;
  MPI_Finalized(&over);  // a communicator may outlive MPI, which has freed its groups then
  if (!over) MPI_Comm_free(&impl_->comm);
}

int PointToPoint::rank() const { return impl_->rank; }
int PointToPoint::size() const { return impl_->size; }
std::string PointToPoint::name(int r) const { return impl_->name(r); }
int PointToPoint::handle() const { return MPI_Comm_c2f(impl_->comm); }

void PointToPoint::begin(const CallRecord& call) {
  impl_->call = call;
  impl_->tag = CallMark(call, impl_->largest_tag).tag();
}

void PointToPoint::send(int lane, const void* data, std::size_t bytes, int to) {
  Lane& l = impl_->lanes[lane];
  std::size_t at = 0;
  do {
    const std::size_t n = std::min(longest, bytes - at);
    l.requests.emplace_back();
    l.pending.push_back({to, false, n});
    check_mpi(MPI_Isend(static_cast<const char*>(data) + at, static_cast<int>(n), MPI_BYTE, to, impl_->tag, impl_->comm,
                        &l.requests.back()),
              "MPI_Isend");
    at += n;
  } while (at < bytes);
}

void PointToPoint::recv(int lane, void* data, std::size_t bytes, int from) {
  Lane& l = impl_->lanes[lane];
  std::size_t at = 0;
  do {
    const std::size_t n = std::min(longest, bytes - at);
    l.requests.emplace_back();
    l.pending.push_back({from, true, n});
    check_mpi(MPI_Irecv(static_cast<char*>(data) + at, static_cast<int>(n), MPI_BYTE, from, MPI_ANY_TAG, impl_->comm,
                        &l.requests.back()),
              "MPI_Irecv");
    at += n;
  } while (at < bytes);
}

bool PointToPoint::is_idle(int lane) {
  Lane& l = impl_->lanes[lane];
  if (l.requests.empty()) return true;
  int done = 0;
  l.statuses.assign(l.requests.size(), MPI_Status{});
  const int code = MPI_Testall(static_cast<int>(l.requests.size()), l.requests.data(), &done, l.statuses.data());
  if (code != MPI_SUCCESS) check_mpi(code, impl_->call.describe().c_str());
  if (done) l.clear();
  return done;
}

void PointToPoint::finish(int lane) {
  Lane& l = impl_->lanes[lane];
  if (l.requests.empty()) return;
  l.statuses.assign(l.requests.size(), MPI_Status{});
  const auto start = std::chrono::steady_clock::now();
  for (int tries = 0, done = 0;; ++tries) {
    const int code = MPI_Testall(static_cast<int>(l.requests.size()), l.requests.data(), &done, l.statuses.data());
    if (code != MPI_SUCCESS && code != MPI_ERR_IN_STATUS) check_mpi(code, impl_->call.describe().c_str());
    if (done || code == MPI_ERR_IN_STATUS) break;
    if (tries % 64 != 63) continue;
    sched_yield();
    if (std::chrono::steady_clock::now() - start > impl_->deadline) impl_->give_up(l);
  }
  impl_->check_received(l);
  l.clear();
}

}  // namespace zero
