#include "comm/agreement/agreement.h"

#include <ATen/Parallel.h>
#include <ATen/ThreadLocalState.h>

#include <array>
#include <bit>
#include <chrono>
#include <cstring>
#include <future>
#include <vector>

#include "base/memory_tracker.h"
#include "comm/agreement/rank0_scope.h"
#include "comm/object_collectives.h"

namespace zero {
namespace {

constexpr auto beat_interval = std::chrono::milliseconds(500);  // well below any useful deadline

/// Thread-local state that work on another thread also needs.
class CallingThread {
 public:
  CallingThread() : threads_(at::get_num_threads()), category_(current_category()), tracker_(current_tracker()) {}

  /// Applies it to the current thread during its lifetime.
  class Guard {
   public:
    explicit Guard(const CallingThread& caller) : state_(caller.state_), category_(caller.category_) {
      at::set_num_threads(caller.threads_);
      if (caller.tracker_) tracker_.emplace(*caller.tracker_);
    }

   private:
    at::ThreadLocalStateGuard state_;
    CategoryScope category_;
    std::optional<TrackerScope> tracker_;
  };

 private:
  at::ThreadLocalState state_;
  int threads_;
  MemoryCategory category_;
  MemoryTracker* tracker_;
};

[[noreturn]] void throw_on_all(ExitCode code, const std::string& message) {
  if (code == ExitCode::bad_input) throw InputError(message);
  throw AgreedError(message, code);
}

std::vector<OutcomeRecord> all_gather_outcomes(Communicator& group, const Outcome& mine) {
  using Numbers = std::array<std::int64_t, OutcomeRecord::numbers>;
  const std::vector<std::int64_t> all = all_gather_numbers(group, std::bit_cast<Numbers>(OutcomeRecord::of(mine)));
  std::vector<OutcomeRecord> records(static_cast<std::size_t>(group.size()));
  std::memcpy(records.data(), all.data(), records.size() * sizeof(OutcomeRecord));
  return records;
}

}  // namespace

void all_or_none(Communicator& group, const std::function<void()>& work) {
  const Outcome mine = outcome_of(work);
  if (const auto cause = cause_of(all_gather_outcomes(group, mine)))
    throw_on_all(cause->code, cause->describe(broadcast_text(group, mine.message, cause->rank)));
}

void on_first(Communicator& group, const std::function<void()>& work) {
  constexpr std::int64_t working = 0, done = 1, failed = 2;
  Outcome outcome;
  std::int64_t state = working;
  if (group.rank() == 0) {
    std::future<Outcome> future = std::async(std::launch::async, [&work, here = CallingThread()] {
      const CallingThread::Guard as_caller(here);
      const Rank0Scope alone;
      return outcome_of(work);
    });
    while (future.wait_for(beat_interval) != std::future_status::ready) broadcast_number(group, working, 0);
    outcome = future.get();
    state = broadcast_number(group, outcome.failed ? failed : done, 0);
  } else {
    while (state == working) state = broadcast_number(group, working, 0);
  }
  if (state == done) return;
  const auto code = static_cast<ExitCode>(broadcast_number(group, static_cast<std::int64_t>(outcome.code), 0));
  throw_on_all(code, broadcast_text(group, outcome.message, 0));
}

std::optional<std::string> agreed_failure_of(const std::function<void()>& work) {
  try {
    work();
    return std::nullopt;
  } catch (const AgreedError& error) {
    return error.what();
  } catch (const InputError& error) {
    return error.what();
  }
}

}  // namespace zero
