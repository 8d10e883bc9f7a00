// One rank of a simulated world. Ranks meet, read each other's tensors in place, and meet again before they continue.
#include <cstring>
#include <set>
#include <thread>
#include <utility>

#include "base/activity_clock.h"
#include "base/error.h"
#include "base/log.h"
#include "comm/part_offsets.h"
#include "comm/sim/sim_state.h"
#include "comm/sum_tree.h"

namespace zero {
namespace {

using Lock = std::unique_lock<std::mutex>;

class SimCommunicator final : public Communicator {
 public:
  SimCommunicator(std::shared_ptr<SimWorld::State> world, std::shared_ptr<SimGroup> group, int rank)
      : Communicator(rank, static_cast<int>(group->ranks.size())), world_(std::move(world)), group_(std::move(group)) {}

  CollectiveMemory& memory() override { return memory_; }
  void poll() override {}
  FailureHandling& failures() override { return failures_; }

 private:
  void do_all_gather(const at::Tensor& full, const at::Tensor& shard, const CallRecord& call) override {
    meet({.call = enter(call), .in = shard.const_data_ptr()});
    char* out = static_cast<char*>(full.data_ptr());
    for (int r = 0; r < size(); ++r, out += shard.nbytes())
      if (out != group_->offers[r].in && shard.nbytes()) std::memcpy(out, group_->offers[r].in, shard.nbytes());
    meet_again();
  }

  void do_reduce_scatter(const at::Tensor& shard, const at::Tensor& full, ReduceOptions options,
                         const CallRecord& call) override {
    meet({.call = enter(call), .in = full.const_data_ptr()});
    const std::size_t offset = static_cast<std::size_t>(rank()) * shard.numel() * full.element_size();
    sum(shard, full.scalar_type(), offset, options);
    meet_again();
  }

  void do_all_reduce(const at::Tensor& tensor, ReduceOptions options, const CallRecord& call) override {
    const at::Tensor result = at::empty_like(tensor);
    meet({.call = enter(call), .in = tensor.const_data_ptr()});
    sum(result, tensor.scalar_type(), 0, options);
    meet_again();
    if (tensor.nbytes()) std::memcpy(tensor.data_ptr(), result.const_data_ptr(), tensor.nbytes());
  }

  void do_broadcast(const at::Tensor& tensor, int root, const CallRecord& call) override {
    meet({.call = enter(call), .in = tensor.const_data_ptr()});
    if (rank() != root && tensor.nbytes()) std::memcpy(tensor.data_ptr(), group_->offers[root].in, tensor.nbytes());
    meet_again();
  }

  void do_all_to_all(const at::Tensor& out, const std::vector<std::int64_t>& out_counts, const at::Tensor& in,
                     const std::vector<std::int64_t>& in_counts, const CallRecord& call) override {
    meet({.call = enter(call), .in = in.const_data_ptr(), .in_counts = &in_counts, .out_counts = &out_counts});
    char* to = static_cast<char*>(out.data_ptr());
    for (const SimOffer& offer : group_->offers) {
      const std::size_t bytes = (*offer.in_counts)[rank()] * in.element_size();
      const std::int64_t offset = part_offsets(*offer.in_counts)[rank()] * in.element_size();
      if (bytes) std::memcpy(to, static_cast<const char*>(offer.in) + offset, bytes);
      to += bytes;
    }
    meet_again();
  }

  void do_barrier(const CallRecord& call) override { meet({.call = enter(call)}); }

  void do_send(const at::Tensor& tensor, int to, const CallRecord& call) override {
    enter(call);
    Lock lock(world_->mutex);
    group_->mail[{rank(), to}].push_back({call, tensor});
    sent_to_.insert(to);
    world_->changed.notify_all();
  }

  void do_recv(const at::Tensor& tensor, int from, const CallRecord& call) override {
    enter(call);
    Lock lock(world_->mutex);
    auto& box = group_->mail[{from, rank()}];
    wait(lock, call, {from}, [&] { return !box.empty(); });
    const SimMessage& message = box.front();
    if (message.call.numel != call.numel || message.call.type != call.type || message.call.tag != call.tag)
      fail(text("mismatch: ", named(rank(), call), ", but ", named(from, message.call)));
    if (tensor.nbytes()) std::memcpy(tensor.data_ptr(), message.tensor.const_data_ptr(), tensor.nbytes());
    box.pop_front();
    world_->changed.notify_all();
  }

  void do_settle(const CallRecord& call) override {
    enter(call);
    Lock lock(world_->mutex);
    for (const int to : std::exchange(sent_to_, {}))
      wait(lock, call, {to}, [&] { return group_->mail[{rank(), to}].empty(); });
  }

  std::unique_ptr<Communicator> do_split(const std::vector<int>& ranks, const CallRecord& call) override {
    const auto [color, key] = place_in(ranks);
    meet({.call = enter(call), .color = color, .key = key});
    std::vector<std::pair<int, int>> members;  // (key, rank) of this color
    for (int r = 0; r < size(); ++r)
      if (group_->offers[r].color == color) members.emplace_back(group_->offers[r].key, r);
    std::sort(members.begin(), members.end());
    std::shared_ptr<SimGroup> part;
    {
      Lock lock(world_->mutex);
      auto& made = group_->parts[color];
      if (!made) {
        made = std::make_shared<SimGroup>();
        for (auto [k, r] : members) made->ranks.push_back(group_->ranks[r]);
        made->offers.resize(members.size());
        made->here.resize(members.size());
      }
      part = made;
    }
    meet_again();
    if (rank() == 0) {  // nobody splits again before rank 0 has
      Lock lock(world_->mutex);
      group_->parts.clear();
    }
    const auto self = std::find(members.begin(), members.end(), std::pair(key, rank()));
    return make_sim_communicator(world_, part, static_cast<int>(self - members.begin()));
  }

  int world_rank() const { return group_->ranks[rank()]; }
  std::string named(int rank, const CallRecord& call) const {
    return text("rank ", group_->ranks[rank], " called ", call.describe());
  }

  /// Logs the call, injects a planned fault, and adds a small random delay.
  const CallRecord& enter(const CallRecord& call) {
    SimRank& self = world_->ranks[world_rank()];
    Lock lock(world_->mutex);
    const std::uint64_t index = self.log.size();
    self.log.push_back({call, group_->ranks});
    for (const SimFault& fault : world_->options.faults)
      if (fault.rank == world_rank() && fault.call == index) carry_out(fault, call, lock);
    lock.unlock();
    const std::uint64_t delay = self.random() % 8;
    if (delay == 7)
      std::this_thread::sleep_for(std::chrono::microseconds(self.random() % 100));
    else if (delay >= 4)
      std::this_thread::yield();
    return call;
  }

  void carry_out(const SimFault& fault, const CallRecord& call, Lock& lock) {
    if (fault.kind == SimFault::Kind::leave) throw SimLeft{};
    if (fault.kind == SimFault::Kind::stall) world_->changed.wait(lock, [&] { return world_->failed; });
    throw Error(text("planned fault at ", call.describe()));
  }

  [[noreturn]] void fail(const std::string& message) {  // requires the mutex
    world_->fail(world_rank(), std::make_exception_ptr(Error(message)), message);
    throw Error(message);
  }

  /// Waits until done(). Throws if the world has failed, if one of `needed` (ranks of the group) is gone, or at the
  /// deadline.
  template <class Done>
  void wait(Lock& lock, const CallRecord& call, const std::vector<int>& needed, Done done) {
    const ActivityScope scope(Activity::ranks);
    SimRank& self = world_->ranks[world_rank()];
    self.waiting = true;
    const auto until = std::chrono::steady_clock::now() + world_->options.deadline;
    int gone = -1;
    const auto over = [&] {
      if (done() || world_->failed) return true;
      for (int r : needed)
        if (world_->ranks[group_->ranks[r]].gone && absent(r)) gone = r;
      return gone >= 0;
    };
    const bool in_time = world_->changed.wait_until(lock, until, over);
    if (done()) {
      self.waiting = false;
      return;
    }
    if (world_->failed)
      throw Error(text("rank ", world_->first_rank, " failed: ", world_->first_message, "; rank ", world_rank(),
                       " was in ", call.describe()));
    if (in_time)
      fail(text(call.describe(), " waits for rank ", group_->ranks[gone], ", which ",
                world_->ranks[group_->ranks[gone]].end));
    std::string missing;
    for (int r : needed)
      if (absent(r)) missing += text(missing.empty() ? "" : ", ", group_->ranks[r]);
    fail(text("deadline of ", world_->options.deadline.count(), " ms passed in ", call.describe(),
              ": waiting for rank ", missing));
  }

  bool absent(int r) const { return !group_->here[r]; }

  /// Waits until all ranks of the group have made the same call.
  void meet(const SimOffer& offer) {
    Lock lock(world_->mutex);
    group_->offers[rank()] = offer;
    come(lock, offer.call);
  }

  /// The second meeting of a call: all ranks have finished reading each other's tensors.
  void meet_again() {
    Lock lock(world_->mutex);
    come(lock, CallRecord(group_->offers[rank()].call));
  }

  void come(Lock& lock, const CallRecord& call) {
    group_->here[rank()] = true;
    const std::uint64_t meeting = group_->meetings;
    if (++group_->arrived == size()) {
      compare();
      group_->arrived = 0;
      group_->here.assign(size(), false);
      ++group_->meetings;
      world_->changed.notify_all();
      return;
    }
    std::vector<int> others;
    for (int r = 0; r < size(); ++r)
      if (r != rank()) others.push_back(r);
    wait(lock, call, others, [&] { return group_->meetings != meeting; });
  }

  void compare() {  // requires the mutex
    const CallRecord& first = group_->offers[0].call;
    for (int r = 1; r < size(); ++r)
      if (!is_same_call(first, group_->offers[r].call))
        fail(describe_mismatch(text("rank ", group_->ranks[0]), first.describe(), text("rank ", group_->ranks[r]),
                               group_->offers[r].call.describe()));
    if (first.kind == CollectiveKind::all_to_all) compare_counts();
  }

  void compare_counts() {
    for (int from = 0; from < size(); ++from)
      for (int to = 0; to < size(); ++to) {
        const SimOffer &giver = group_->offers[from], &taker = group_->offers[to];
        const std::int64_t sent = (*giver.in_counts)[to], expected = (*taker.out_counts)[from];
        if (sent != expected)
          fail(text("mismatch of collectives: ", named(from, giver.call), " with ", sent, " for rank ",
                    group_->ranks[to], ", which expects ", expected, " in ", taker.call.describe()));
      }
  }

  /// Stores into `out` the sum of the ranks' offers, from byte `offset` on.
  void sum(const at::Tensor& out, at::ScalarType in_type, std::size_t offset, ReduceOptions options) {
    std::vector<const void*> inputs;
    for (const SimOffer& offer : group_->offers) inputs.push_back(static_cast<const char*>(offer.in) + offset);
    sum_tree({inputs, in_type}, {out.data_ptr(), out.scalar_type(), options.accumulate}, out.numel(), options.sum_type);
  }

  std::shared_ptr<SimWorld::State> world_;
  std::shared_ptr<SimGroup> group_;
  std::set<int> sent_to_;  // since the last settle()
  TorchMemory memory_;
  SynchronousFailures failures_;
};

}  // namespace

std::unique_ptr<Communicator> make_sim_communicator(std::shared_ptr<SimWorld::State> world,
                                                    std::shared_ptr<SimGroup> group, int rank) {
  return std::make_unique<SimCommunicator>(std::move(world), std::move(group), rank);
}

}  // namespace zero
