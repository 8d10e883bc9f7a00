#include "comm/mpi/shared_window.h"

#include <sched.h>

#include <type_traits>

#include "base/activity_clock.h"
#include "base/error.h"
#include "base/log.h"

namespace zero {
namespace {

constexpr std::size_t page = 4096;
std::size_t pages(std::size_t bytes) { return (bytes + page - 1) / page * page; }

int cores() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
}

}  // namespace

static_assert(std::is_trivially_copyable_v<CallRecord>, "a call is shown to other processes as it is");

std::size_t WindowShape::bytes() const {
  return ranks * (pages(sizeof(SharedWindow::RankState)) + slots * pages(slot_bytes));
}

SharedWindow::SharedWindow(SharedSegment segment, const WindowShape& shape, int rank, std::vector<std::string> names,
                           std::chrono::duration<double> deadline)
    : segment_(std::move(segment)),
      shape_(shape),
      rank_(rank),
      names_(std::move(names)),
      deadline_(deadline),
      compared_(shape.ranks) {
  ZERO_CHECK(shape.slots >= 2 && shape.slots < recent_calls && segment_.bytes() >= shape.bytes(),
             "a window of this shape does not fit");
  if (shape.ranks > cores()) limits_ = {.spins = 20, .yields = 20};
}

SharedWindow::~SharedWindow() {
  const bool unwinds = std::uncaught_exceptions() > exceptions_;
  if (segment_.data() && !unwinds) state_of(rank_).ended.store(1, std::memory_order_release);
}

SharedWindow::RankState& SharedWindow::state_of(int r) const {
  return *reinterpret_cast<RankState*>(segment_.data() + r * pages(sizeof(RankState)));
}

std::byte* SharedWindow::slot(int r, std::uint32_t round) const {
  const std::size_t index = static_cast<std::size_t>(r) * shape_.slots + round % shape_.slots;
  return segment_.data() + shape_.ranks * pages(sizeof(RankState)) + index * pages(shape_.slot_bytes);
}

void SharedWindow::begin(const CallRecord& call) {
  call_ = call;
  ++calls_;
  state_of(rank_).recent[calls_ % recent_calls] = {calls_, call};
  state_of(rank_).calls.store(calls_, std::memory_order_release);
  compared_.assign(shape_.ranks, false);
  compared_[rank_] = true;
}

std::byte* SharedWindow::open() {
  ++write_round_;
  const std::uint32_t before = write_round_ - shape_.slots;
  for (int r = 0; r < shape_.ranks; ++r)
    if (!state_of(r).finished.wait(before, limits_, deadline_, state_of(r).ended)) give_up(false, before);
  return slot(rank_, write_round_);
}

void SharedWindow::post() { state_of(rank_).posted.raise(write_round_); }

// In a call's later rounds, the ranks are all there and copy.
void SharedWindow::await(int r) {
  if (!compared_[r] && !state_of(r).posted.reached(read_round_)) return await_arrival(r);
  if (!state_of(r).posted.wait(read_round_, limits_, deadline_, state_of(r).ended)) give_up(true, read_round_);
  if (!compared_[r]) compare(r);
}

void SharedWindow::await_arrival(int r) {
  const ActivityScope scope(Activity::ranks);
  if (!state_of(r).posted.wait(read_round_, limits_, deadline_, state_of(r).ended)) give_up(true, read_round_);
  compare(r);
}

void SharedWindow::await_all() {
  for (int r = 0; r < shape_.ranks; ++r)
    if (r != rank_) await(r);
}

const std::byte* SharedWindow::slot_of(int r) const { return slot(r, read_round_); }

void SharedWindow::finish() { state_of(rank_).finished.raise(read_round_); }

void SharedWindow::compare(int r) {
  compared_[r] = true;
  const IndexedCall& published = state_of(r).recent[calls_ % recent_calls];
  if (published.index == calls_ && is_same_call(published.call, call_)) return;
  const std::uint64_t theirs = state_of(r).calls.load(std::memory_order_acquire);
  const CallRecord& other = published.index == calls_ ? published.call : state_of(r).recent[theirs % recent_calls].call;
  throw Error(describe_mismatch(names_[rank_], call_.describe(), names_[r], other.describe()));
}

void SharedWindow::give_up(bool posted, std::uint32_t round) {
  std::string missing;
  for (int r = 0; r < shape_.ranks; ++r) {
    if (r == rank_ || (posted ? state_of(r).posted : state_of(r).finished).reached(round)) continue;
    const std::uint64_t calls = state_of(r).calls.load(std::memory_order_acquire);
    const std::string last =
        calls ? state_of(r).recent[calls % recent_calls].call.describe() : std::string("no call yet");
    if (has_ended(r))
      throw Error(text(call_.describe(), " on ", names_[rank_], " waits for ", names_[r], ", which has ended after ",
                       last,
                       ": its program has returned, or let go of its model. All ranks make the same calls to the end, "
                       "one that has nothing to do too"));
    missing += text(missing.empty() ? "" : "; ", names_[r], ", which has come to ", last);
  }
  throw Error(text("deadline of ", deadline_.count(), " s passed in ", call_.describe(), " on ", names_[rank_],
                   " among ", shape_.ranks, " ranks: waiting for ",
                   missing.empty() ? "ranks that came just now" : missing));
}

}  // namespace zero
