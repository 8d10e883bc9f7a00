#pragma once
// Communicator: the collectives of one group of ranks. The only view that anything above comm/ has of other ranks.
//
// Contract of every collective:
// - all ranks of the group issue the same calls in the same order, with the same element counts and types;
// - tensors are contiguous and live on the backend's device; a call is ordered on the current stream, and on the CPU it
//   returns finished; gradients are not recorded;
// - reductions always sum (never average). On the CPU partial sums follow a balanced binary tree over ranks,
//   (0+1)+(2+3), whatever the message size, so results repeat bit for bit; they are held in `sum_type` and rounded
//   once, to the type of the output.
// The public methods check arguments and record the call once, for every backend; a backend implements the do_ methods.
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/failure_reports.h"

namespace zero {

/// The part of a training run that issues a call.
enum class Phase : std::uint8_t { setup, forward, backward, reduce, optimizer, publish, validate, save, other };
const char* name_of(Phase phase);

/// What a call is for: travels with it into logs, desync reports, traces and fault plans.
struct CallTag {
  Phase phase = Phase::other;
  int unit = -1;   // index in the chain, -1 when none
  int group = -1;  // index of the parameter group, -1 when none
};

enum class CollectiveKind : std::uint8_t {
  all_gather,
  reduce_scatter,
  all_reduce,
  broadcast,
  send,
  recv,
  barrier,
  split
};
const char* name_of(CollectiveKind kind);

/// One call as a backend sees it.
struct CallRecord {
  std::uint64_t sequence = 0;  // counts the calls on this communicator from 0
  CollectiveKind kind = CollectiveKind::barrier;
  std::int64_t numel = 0;           // of the full vector: size x shard for all_gather and reduce_scatter
  at::ScalarType type = at::kByte;  // of the data that travels
  int peer = -1;                    // root of a broadcast, other side of send and recv
  CallTag tag;

  /// One line for people: "#12 reduce_scatter of 589824 bfloat16 (backward, unit 3, group 3)".
  std::string describe() const;
};

struct ReduceOptions {
  at::ScalarType sum_type = at::kFloat;  // kDouble when the input is fp64
  bool accumulate = false;               // reduce_scatter: add to the output instead of overwriting it
};

class Communicator {
 public:
  virtual ~Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }

  /// full [size * n] <- the shards [n] of all ranks, by rank. The shard may be this rank's own slice of `full` (in
  /// place).
  void all_gather_into(const at::Tensor& full, const at::Tensor& shard, CallTag tag = {});

  /// shard [n] <- (or +=) this rank's slice of the sum over ranks of full [size * n]. Types of the two may differ.
  /// The shard may be this rank's own slice of `full` (then of one type and without accumulate).
  void reduce_scatter(const at::Tensor& shard, const at::Tensor& full, ReduceOptions options = {}, CallTag tag = {});

  /// tensor <- the sum over ranks, in place.
  void all_reduce(const at::Tensor& tensor, ReduceOptions options = {}, CallTag tag = {});

  /// tensor <- root's tensor.
  void broadcast(const at::Tensor& tensor, int root, CallTag tag = {});

  void send(const at::Tensor& tensor, int to, CallTag tag = {});
  void recv(const at::Tensor& tensor, int from, CallTag tag = {});
  void barrier(CallTag tag = {});

  /// A communicator of the ranks that pass the same color, ordered by (key, rank). Collective.
  std::unique_ptr<Communicator> split(int color, int key);

  /// Memory that this backend's collectives are fastest on (from the arena where there is one). Uninitialised.
  virtual at::Tensor allocate(std::int64_t numel, at::ScalarType type);

  /// Before the allocate() calls that need it: where a backend registers memory, all these pieces (bytes each) will
  /// come out of one registered arena, at the same offsets on all ranks, which allocate in the same order.
  /// `largest_sum`: bytes of the largest vector that reduce_scatter or all_reduce will be given, 0 for none. A second
  /// call makes another arena; the first one stays as long as its tensors do. Collective.
  virtual void reserve(const std::vector<std::int64_t>& pieces, std::int64_t largest_sum = 0) {}

  /// How ranks tell each other what they last did after a failure; null where the backend cannot. Collective.
  virtual std::unique_ptr<FailureReports> make_failure_reports() { return nullptr; }

  /// Bytes that allocate() holds on the device and no allocator of LibTorch counts.
  virtual std::int64_t own_device_bytes() const { return 0; }

  /// Throws what went wrong in earlier calls, where a backend's calls return before they are done.
  virtual void check() const {}

  /// This rank has failed and will make no more calls, nor will those split from this one: what is under way on its
  /// device ends without the other ranks, so that nothing here waits for them.
  virtual void abandon() noexcept {}

  /// Called with every record before the call runs, on the calling thread. For traces and tests.
  void set_observer(std::function<void(const CallRecord&)> observer) { observer_ = std::move(observer); }

 protected:
  Communicator(int rank, int size) : rank_(rank), size_(size) {}

  virtual void do_all_gather(const at::Tensor& full, const at::Tensor& shard, const CallRecord& call) = 0;
  virtual void do_reduce_scatter(const at::Tensor& shard, const at::Tensor& full, ReduceOptions options,
                                 const CallRecord& call) = 0;
  virtual void do_all_reduce(const at::Tensor& tensor, ReduceOptions options, const CallRecord& call) = 0;
  virtual void do_broadcast(const at::Tensor& tensor, int root, const CallRecord& call) = 0;
  virtual void do_send(const at::Tensor& tensor, int to, const CallRecord& call) = 0;
  virtual void do_recv(const at::Tensor& tensor, int from, const CallRecord& call) = 0;
  virtual void do_barrier(const CallRecord& call) = 0;
  virtual std::unique_ptr<Communicator> do_split(int color, int key, const CallRecord& call) = 0;

 private:
  CallRecord record(CollectiveKind kind, std::int64_t numel, at::ScalarType type, CallTag tag, int peer = -1);

  int rank_;
  int size_;
  std::uint64_t sequence_ = 0;
  std::function<void(const CallRecord&)> observer_;
};

/// Abandons a communicator when an exception ends its scope. As an object's last member it does so before the others
/// let go of memory, for which a device waits until its work is done.
class AbandonOnError {
 public:
  explicit AbandonOnError(Communicator& communicator) : communicator_(communicator) {}
  ~AbandonOnError() {
    if (std::uncaught_exceptions() > exceptions_) communicator_.abandon();
  }
  AbandonOnError(const AbandonOnError&) = delete;
  AbandonOnError& operator=(const AbandonOnError&) = delete;

 private:
  Communicator& communicator_;
  int exceptions_ = std::uncaught_exceptions();
};

}  // namespace zero
