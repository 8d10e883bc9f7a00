#pragma once
// Communicator: the collectives of one group of ranks. Code outside comm/ reaches other ranks only through this class.
//
// Contract of every collective:
// - all ranks of the group issue the same calls in the same order, with the same types and, except in all_to_all, the
//   same element counts;
// - tensors are contiguous and live on the backend's device;
// - a call is ordered on the current stream; on the CPU it has finished when it returns;
// - autograd does not record calls;
// - reductions sum and never average. Partial sums are held in `sum_type` and rounded once, to the output's type. On
//   the CPU, sums follow a balanced binary tree over ranks, (0+1)+(2+3), for every message size, so results repeat bit
//   for bit.
//
// The public methods check arguments and record the call, so backends need not. A backend implements all pure virtual
// methods. None has a default, so a backend or decorator (comm/decorators/forwarding_communicator.h) that omits one
// does not compile.
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "comm/call_names.h"
#include "comm/call_record.h"
#include "comm/collective_memory.h"
#include "comm/failure_handling.h"

namespace zero {

struct ReduceOptions {
  at::ScalarType sum_type = at::kFloat;  // kDouble if the input is fp64
  bool accumulate = false;               // reduce_scatter: add to the output instead of overwriting it
};

class Communicator {
 public:
  virtual ~Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }

  /// full [size * n] <- the shards [n] of all ranks, in rank order. The shard may be this rank's own slice of `full`
  /// (in place).
  void all_gather_into(const at::Tensor& full, const at::Tensor& shard, CallTag tag = {});

  /// shard [n] <- (or +=) this rank's slice of the sum over ranks of full [size * n]. The two types may differ. The
  /// shard may be this rank's own slice of `full` if both have one type and `accumulate` is not set.
  void reduce_scatter(const at::Tensor& shard, const at::Tensor& full, ReduceOptions options = {}, CallTag tag = {});

  /// tensor <- the sum over ranks, in place.
  void all_reduce(const at::Tensor& tensor, ReduceOptions options = {}, CallTag tag = {});

  /// tensor <- root's tensor.
  void broadcast(const at::Tensor& tensor, int root, CallTag tag = {});

  /// Receives out_counts[r] elements from every rank r into `out` and sends in_counts[r] elements of `in` to every rank
  /// r, both in rank order. Counts may be 0 and may differ between pairs. The count that rank i sends to rank j must
  /// equal the count that j expects from i. The tensors have the same type and do not overlap. Their lengths are the
  /// sums of the counts.
  void all_to_all(const at::Tensor& out, const std::vector<std::int64_t>& out_counts, const at::Tensor& in,
                  const std::vector<std::int64_t>& in_counts, CallTag tag = {});

  /// Starts a send and returns. Until settle() returns, the tensor must not change and the communicator must live.
  /// Messages from one rank to another arrive in the order sent. On a GPU the current stream waits for the receiver.
  void send(const at::Tensor& tensor, int to, CallTag tag = {});
  void recv(const at::Tensor& tensor, int from, CallTag tag = {});
  /// Waits until the memory of all messages that this rank has sent may be reused. Not collective.
  void settle(CallTag tag = {});
  /// Makes progress on messages in flight without waiting. Call it between computations, for backends whose messages
  /// advance only inside calls.
  virtual void poll() = 0;
  void barrier(CallTag tag = {});

  /// Makes a communicator of the listed ranks, in this order. The list must include the caller. All ranks of a new
  /// group pass the same list. Collective.
  std::unique_ptr<Communicator> split(const std::vector<int>& ranks);

  /// Makes another communicator of the same ranks, whose calls may run concurrently with this one's. Collective.
  std::unique_ptr<Communicator> duplicate();

  /// The memory on which this backend's collectives are fastest. Lives as long as the communicator.
  virtual CollectiveMemory& memory() = 0;

  /// Returns the object that handles failures outside the communicator's calls and exchanges the reports of failing
  /// ranks. It lives as long as the communicator.
  virtual FailureHandling& failures() = 0;

  /// Sets the names of calls for error messages. Communicators that are split from this one later inherit them.
  void set_names(std::shared_ptr<const CallNames> names) { names_ = std::move(names); }

  /// Sets a function that receives every call's record before the call runs, on the calling thread. For traces and
  /// tests.
  void set_observer(std::function<void(const CallRecord&)> observer) { observer_ = std::move(observer); }

 protected:
  Communicator(int rank, int size) : rank_(rank), size_(size) {}

  virtual void do_all_gather(const at::Tensor& full, const at::Tensor& shard, const CallRecord& call) = 0;
  virtual void do_reduce_scatter(const at::Tensor& shard, const at::Tensor& full, ReduceOptions options,
                                 const CallRecord& call) = 0;
  virtual void do_all_reduce(const at::Tensor& tensor, ReduceOptions options, const CallRecord& call) = 0;
  virtual void do_broadcast(const at::Tensor& tensor, int root, const CallRecord& call) = 0;
  /// Also called on a rank that neither sends nor receives.
  virtual void do_all_to_all(const at::Tensor& out, const std::vector<std::int64_t>& out_counts, const at::Tensor& in,
                             const std::vector<std::int64_t>& in_counts, const CallRecord& call) = 0;
  virtual void do_send(const at::Tensor& tensor, int to, const CallRecord& call) = 0;
  virtual void do_recv(const at::Tensor& tensor, int from, const CallRecord& call) = 0;
  virtual void do_settle(const CallRecord& call) = 0;
  virtual void do_barrier(const CallRecord& call) = 0;
  virtual std::unique_ptr<Communicator> do_split(const std::vector<int>& ranks, const CallRecord& call) = 0;

  /// `color` differs between the groups of one split(). `key` is this rank's place in its own group.
  struct SplitPlace {
    int color = 0, key = 0;
  };
  SplitPlace place_in(const std::vector<int>& ranks) const;

 private:
  CallRecord record(CollectiveKind kind, std::int64_t numel, at::ScalarType type, CallTag tag, int peer = -1);

  int rank_;
  int size_;
  std::uint64_t sequence_ = 0;
  std::shared_ptr<const CallNames> names_;
  std::function<void(const CallRecord&)> observer_;
};

}  // namespace zero
