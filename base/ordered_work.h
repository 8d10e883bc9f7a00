#pragma once
// Work on the chunks of something long, on all cores that a node has for the job, with results in the order of the
// chunks.
#include <algorithm>
#include <deque>
#include <future>
#include <optional>
#include <type_traits>
#include <utility>

#include "base/core_share.h"

namespace zero {

/// Runs `work(Job&)` on what `next()` gives (an std::optional<Job>) until that is nothing, on one thread for each of
/// `cores`, and hands the results to `take` in the order in which the jobs came. `next` and `take` run on the calling
/// thread; no more jobs than threads and one wait. An exception is thrown when its job's turn comes, so it is that of
/// the first job that fails; one of `next` after all jobs that it gave.
template <class Next, class Work, class Take>
void work_in_order(const CoreSet& cores, Next&& next, Work&& work, Take&& take) {
  using Job = typename std::invoke_result_t<Next&>::value_type;
  using Result = std::invoke_result_t<Work&, Job&>;
  const std::size_t threads = std::max<std::size_t>(1, cores.count());
  std::deque<std::future<Result>> running;  // each waits for its thread when it goes
  const auto take_first = [&] {
    Result result = running.front().get();
    running.pop_front();
    take(std::move(result));
  };
  const auto next_job = [&]() -> std::optional<Job> {
    try {
      return next();
    } catch (...) {
      while (!running.empty()) take_first();  // what they throw comes first
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
