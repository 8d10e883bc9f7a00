#include "comm/communicator.h"

#include <ATen/core/LegacyTypeDispatch.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <sstream>

#include "base/activity_clock.h"
#include "base/error.h"
#include "base/log.h"
#include "comm/agreement/rank0_scope.h"
#include "comm/part_offsets.h"

namespace zero {
namespace {

std::string shape_of(const at::Tensor& tensor) {
  std::ostringstream out;
  out << at::toString(tensor.scalar_type()) << " of " << tensor.numel();
  return out.str();
}

void check_plain(const at::Tensor& tensor, const char* call, const char* argument) {
  ZERO_CHECK(tensor.defined(), text(call, ": ", argument, " is undefined"));
  ZERO_CHECK(tensor.is_contiguous(), text(call, ": ", argument, " (", shape_of(tensor), ") is not contiguous"));
}

bool can_sum(at::ScalarType type) {
  switch (type) {
    case at::kFloat:
    case at::kDouble:
    case at::kBFloat16:
    case at::kHalf:
    case at::kInt:
    case at::kLong:
      return true;
    default:
      return false;
  }
}

/// The options for backends: fp64 is never summed in a narrower type, and integer sums are exact.
ReduceOptions checked(ReduceOptions options, at::ScalarType in, at::ScalarType out, const char* call) {
  ZERO_CHECK(can_sum(in) && can_sum(out), text(call, ": no sums of ", at::toString(in), " into ", at::toString(out)));
  const bool integral = c10::isIntegralType(in, false);
  ZERO_CHECK(integral ? in == out : c10::isFloatingType(out),
             text(call, ": sums of ", at::toString(in), " cannot go into ", at::toString(out)));
  ZERO_CHECK(options.sum_type == at::kFloat || options.sum_type == at::kDouble,
             text(call, ": sum_type is Float or Double, not ", at::toString(options.sum_type)));
  if (integral) options.sum_type = in;
  if (in == at::kDouble) options.sum_type = at::kDouble;
  return options;
}

/// How `part` lies in `whole`: not at all, as slice `rank`, or in another position. Meta tensors never do.
enum class Overlap { none, own_slice, other };
Overlap overlap_of(const at::Tensor& part, const at::Tensor& whole, int rank) {
  const char* p = static_cast<const char*>(part.const_data_ptr());
  const char* w = static_cast<const char*>(whole.const_data_ptr());
  if (part.is_meta() || part.nbytes() == 0 || whole.nbytes() == 0) return Overlap::none;
  if (p + part.nbytes() <= w || w + whole.nbytes() <= p) return Overlap::none;
  const bool own = part.scalar_type() == whole.scalar_type() && p == w + static_cast<std::size_t>(rank) * part.nbytes();
  return own ? Overlap::own_slice : Overlap::other;
}

/// The counts, one per rank, must add up to the tensor.
void check_counts(const std::vector<std::int64_t>& counts, const at::Tensor& tensor, int ranks, const char* argument) {
  ZERO_CHECK(counts.size() == static_cast<std::size_t>(ranks),
             text("all_to_all over ", ranks, " ranks: ", counts.size(), " counts of ", argument));
  ZERO_CHECK(std::all_of(counts.begin(), counts.end(), [](std::int64_t count) { return count >= 0; }),
             text("all_to_all: a count of ", argument, " is negative"));
  const std::int64_t sum = part_offsets(counts).back();
  ZERO_CHECK(sum == tensor.numel(),
             text("all_to_all: the counts of ", argument, " are ", sum, " together, but it is ", shape_of(tensor)));
}

/// Hides a backend's writes from autograd: they belong to no graph and do not count as writes to a
/// variable.
using InvisibleToAutograd = at::AutoDispatchBelowADInplaceOrView;

constexpr std::int64_t little = 4096;  // bytes: a call with less is a meeting of ranks

/// Bytes that reach this rank in a call of `size` ranks.
std::int64_t incoming_bytes(const CallRecord& call, int size) {
  const std::int64_t bytes = call.numel * std::int64_t(c10::elementSize(call.type));
  const std::int64_t others = bytes / size * (size - 1);
  switch (call.kind) {
    case CollectiveKind::all_gather:
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::all_to_all:
      return others;
    case CollectiveKind::all_reduce:
      return 2 * others;
    case CollectiveKind::broadcast:
    case CollectiveKind::recv:
      return bytes;
    default:
      return 0;
  }
}

Activity activity_of(const CallRecord& call, std::int64_t bytes) {
  switch (call.kind) {
    case CollectiveKind::all_gather:
    case CollectiveKind::all_to_all:
    case CollectiveKind::broadcast:
      return bytes < little ? Activity::ranks : Activity::gathers;
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::all_reduce:
      return bytes < little ? Activity::ranks : Activity::sums;
    default:
      return Activity::ranks;
  }
}

/// A group of one rank copies in memory.
Doing doing(const CallRecord& call, int size) {
  if (size == 1) return {Activity::kernels};
  const std::int64_t bytes = incoming_bytes(call, size);
  return {activity_of(call, bytes), name_of(call.kind), name_of(call.tag.phase), call.tag.unit, bytes};
}

}  // namespace

CallRecord Communicator::record(CollectiveKind kind, std::int64_t numel, at::ScalarType type, CallTag tag, int peer) {
  CallRecord call;
  call.sequence = sequence_++;
  call.kind = kind;
  call.numel = numel;
  call.type = type;
  call.peer = peer;
  call.tag = tag;
  if (const std::string* name = names_ ? names_->find(tag.unit) : nullptr) call.name = UnitName(*name);
  if (size_ > 1 && Rank0Scope::is_active())
    throw InputError(text(call.describe(), " over ", size_,
                          " ranks, inside work that one rank does while the others wait (on_main(), main_first()): "
                          "they would not join it. Use the model and the other ranks outside that work, on all "
                          "ranks, and only the results inside it"));
  if (observer_) observer_(call);
  return call;
}

void Communicator::all_gather_into(const at::Tensor& full, const at::Tensor& shard, CallTag tag) {
  check_plain(full, "all_gather", "full");
  check_plain(shard, "all_gather", "shard");
  ZERO_CHECK(full.scalar_type() == shard.scalar_type() && full.numel() == shard.numel() * size_,
             text("all_gather over ", size_, " ranks: ", shape_of(shard), " does not fill ", shape_of(full)));
  ZERO_CHECK(overlap_of(shard, full, rank_) != Overlap::other,
             "all_gather: the shard overlaps full outside its own slice");
  const InvisibleToAutograd guard;
  const CallRecord call = record(CollectiveKind::all_gather, full.numel(), full.scalar_type(), tag);
  const ActivityScope scope(doing(call, size_));
  do_all_gather(full, shard, call);
}

void Communicator::reduce_scatter(const at::Tensor& shard, const at::Tensor& full, ReduceOptions options, CallTag tag) {
  check_plain(shard, "reduce_scatter", "shard");
  check_plain(full, "reduce_scatter", "full");
  ZERO_CHECK(full.numel() == shard.numel() * size_, text("reduce_scatter over ", size_, " ranks: ", shape_of(full),
                                                         " does not divide into ", shape_of(shard)));
  const Overlap overlap = overlap_of(shard, full, rank_);
  ZERO_CHECK(overlap == Overlap::none || (overlap == Overlap::own_slice && !options.accumulate),
             "reduce_scatter: the shard overlaps full outside its own slice, or accumulates onto it");
  options = checked(options, full.scalar_type(), shard.scalar_type(), "reduce_scatter");
  const InvisibleToAutograd guard;
  const CallRecord call = record(CollectiveKind::reduce_scatter, full.numel(), full.scalar_type(), tag);
  const ActivityScope scope(doing(call, size_));
  do_reduce_scatter(shard, full, options, call);
}

void Communicator::all_reduce(const at::Tensor& tensor, ReduceOptions options, CallTag tag) {
  check_plain(tensor, "all_reduce", "tensor");
  ZERO_CHECK(!options.accumulate, "all_reduce: accumulate is for reduce_scatter");
  options = checked(options, tensor.scalar_type(), tensor.scalar_type(), "all_reduce");
  const InvisibleToAutograd guard;
  const CallRecord call = record(CollectiveKind::all_reduce, tensor.numel(), tensor.scalar_type(), tag);
  const ActivityScope scope(doing(call, size_));
  do_all_reduce(tensor, options, call);
}

void Communicator::broadcast(const at::Tensor& tensor, int root, CallTag tag) {
  check_plain(tensor, "broadcast", "tensor");
  ZERO_CHECK(root >= 0 && root < size_, text("broadcast: root ", root, " of ", size_, " ranks"));
  const InvisibleToAutograd guard;
  const CallRecord call = record(CollectiveKind::broadcast, tensor.numel(), tensor.scalar_type(), tag, root);
  const ActivityScope scope(doing(call, size_));
  do_broadcast(tensor, root, call);
}

void Communicator::all_to_all(const at::Tensor& out, const std::vector<std::int64_t>& out_counts, const at::Tensor& in,
                              const std::vector<std::int64_t>& in_counts, CallTag tag) {
  check_plain(out, "all_to_all", "out");
  check_plain(in, "all_to_all", "in");
  ZERO_CHECK(out.scalar_type() == in.scalar_type(), text("all_to_all: ", shape_of(in), " into ", shape_of(out)));
  check_counts(out_counts, out, size_, "out");
  check_counts(in_counts, in, size_, "in");
  ZERO_CHECK(out_counts[rank_] == in_counts[rank_],
             text("all_to_all: rank ", rank_, " sends itself ", in_counts[rank_], " and expects ", out_counts[rank_]));
  ZERO_CHECK(overlap_of(in, out, rank_) == Overlap::none, "all_to_all: in and out overlap");
  const InvisibleToAutograd guard;
  const CallRecord call = record(CollectiveKind::all_to_all, in.numel(), in.scalar_type(), tag);
  const ActivityScope scope(doing(call, size_));
  do_all_to_all(out, out_counts, in, in_counts, call);
}

void Communicator::send(const at::Tensor& tensor, int to, CallTag tag) {
  check_plain(tensor, "send", "tensor");
  ZERO_CHECK(to >= 0 && to < size_ && to != rank_, text("send: to rank ", to, " of ", size_, " by rank ", rank_));
  const InvisibleToAutograd guard;
  const CallRecord call = record(CollectiveKind::send, tensor.numel(), tensor.scalar_type(), tag, to);
  const ActivityScope scope(doing(call, size_));
  do_send(tensor, to, call);
}

void Communicator::recv(const at::Tensor& tensor, int from, CallTag tag) {
  check_plain(tensor, "recv", "tensor");
  ZERO_CHECK(from >= 0 && from < size_ && from != rank_,
             text("recv: from rank ", from, " of ", size_, " by rank ", rank_));
  const InvisibleToAutograd guard;
  const CallRecord call = record(CollectiveKind::recv, tensor.numel(), tensor.scalar_type(), tag, from);
  const ActivityScope scope(doing(call, size_));
  do_recv(tensor, from, call);
}

void Communicator::settle(CallTag tag) {
  const CallRecord call = record(CollectiveKind::settle, 0, at::kByte, tag);
  const ActivityScope scope(doing(call, size_));
  do_settle(call);
}

void Communicator::barrier(CallTag tag) {
  const CallRecord call = record(CollectiveKind::barrier, 0, at::kByte, tag);
  const ActivityScope scope(doing(call, size_));
  do_barrier(call);
}

std::unique_ptr<Communicator> Communicator::split(const std::vector<int>& ranks) {
  const std::set<int> apart(ranks.begin(), ranks.end());
  ZERO_CHECK(apart.count(rank_) && apart.size() == ranks.size() && *apart.begin() >= 0 && *apart.rbegin() < size_,
             text("split: ranks of ", size_, ", each once, and rank ", rank_, " itself among them"));
  auto part = do_split(ranks, record(CollectiveKind::split, 0, at::kByte, {}));
  part->names_ = names_;
  ZERO_CHECK(
      part->size() == int(ranks.size()) && part->rank() == place_in(ranks).key,
      text("split: ranks of one group named it differently; rank ", rank_, " is ", part->rank(), " of ", part->size()));
  return part;
}

std::unique_ptr<Communicator> Communicator::duplicate() {
  std::vector<int> all(static_cast<std::size_t>(size_));
  std::iota(all.begin(), all.end(), 0);
  return split(all);
}

Communicator::SplitPlace Communicator::place_in(const std::vector<int>& ranks) const {
  return {*std::min_element(ranks.begin(), ranks.end()),
          int(std::find(ranks.begin(), ranks.end(), rank_) - ranks.begin())};
}

}  // namespace zero
