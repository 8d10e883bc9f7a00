#pragma once
// Runs work items in parallel on the cores that the job has on a node, and delivers their results in order.
#include <algorithm>
#include <deque>
#include <future>
#include <optional>
#include <type_traits>
#include <utility>

#include "base/core_share.h"

namespace zero {

/// Runs `work(Job&)` on each result of `next()` (an std::optional<Job>) until `next()` returns nothing. One thread runs
/// per core in `cores`. The results reach `take` in the order of the jobs. `next` and `take` run on the calling thread.
/// There is at most one more pending job than there are threads. A job's exception is thrown when its result is due, so
/// the first failing job in order determines the exception. An exception from `next` is thrown after the results of all
/// earlier jobs.
template <class Next, class Work, class Take>
void work_in_order(const CoreSet& cores, Next&& next, Work&& work, Take&& take) {
  using Job = typename std::invoke_result_t<Next&>::value_type;
  using Result = std::invoke_result_t<Work&, Job&>;
  const std::size_t threads = std::max<std::size_t>(1, cores.count());
  std::deque<std::future<Result>> running;  // each waits for its thread on destruction
  const auto take_first = [&] {
    Result result = running.front().get();
    running.pop_front();
    take(std::move(result));
  };
  const auto next_job = [&]() -> std::optional<Job> {
    try {
      return next();
    } catch (...) {
      while (!running.empty()) take_first();  // their exceptions come first
      throw;
    }
  };
  while (std::optional<Job> job = next_job()) {
    if (running.size() > threads) take_first();
    running.push_back(std::async(std::launch::async, [&work, &cores, job = std::move(*job)]() mutable {
      run_on_cores(cores);
      return work(job);
    }));
  }
  while (!running.empty()) take_first();
}

}  // namespace zero
