#include <c10/util/Backtrace.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "tests/cuda/emulated/device.h"

namespace zero::emulated {
namespace {

constexpr std::size_t most_waiting = 4096;  // tasks; beyond, the host works some off
constexpr int most_at_once = 64;            // tasks while the device's memory stays open and the lock is held

}  // namespace

void not_emulated(const char* what) {
  std::fprintf(stderr, "emulated GPU: %s\n%s\n", what, c10::get_backtrace(1).c_str());
  std::abort();
}

std::int64_t environment(const char* name, std::int64_t otherwise) {
  const char* value = std::getenv(name);
  return value && *value ? std::atoll(value) : otherwise;
}

// Never destroyed: threads and destructors of other libraries may still call when the process ends.
Scheduler& Scheduler::get() {
  static auto* scheduler = new Scheduler;
  return *scheduler;
}

Scheduler::Scheduler() : random_(static_cast<std::uint64_t>(environment("ZERO_EMULATED_SEED", 0))) {}

/// Runs one task of one stream, drawn among those that are ready. False if none is.
bool Scheduler::step(std::optional<DeviceAccess>& access) {
  std::vector<std::deque<Task>*> able;
  for (auto& [stream, tasks] : streams_)
    if (!tasks.empty() && (!tasks.front().ready || tasks.front().ready())) able.push_back(&tasks);
  if (able.empty()) return false;
  std::deque<Task>& tasks = *able[random_() % able.size()];
  const Task task = std::move(tasks.front());
  tasks.pop_front();
  --waiting_;
  if (!task.run) return true;
  if (!access) access.emplace();
  clock_ += 1e-6;
  task.run();
  return true;
}

void Scheduler::take(double seconds) {
  std::lock_guard guard(lock_);
  clock_ += seconds;
}

/// Not ready may mean that another rank is awaited: the lock is open between the looks, so that other threads can abort
/// it.
template <class Done>
void Scheduler::run_until(Done done) {
  for (;;) {
    bool worked = false;
    {
      std::lock_guard guard(lock_);
      std::optional<DeviceAccess> access;
      for (int n = 0; n < most_at_once; ++n) {
        if (done()) return;
        if (!step(access)) break;
        worked = true;
      }
    }
    if (!worked) std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

void Scheduler::enqueue(cudaStream_t stream, Task task) {
  std::unique_lock guard(lock_);
  if (const auto captured = captured_.find(stream); captured != captured_.end()) {
    captured->second->push_back(std::move(task));
    return;
  }
  streams_[stream].push_back(std::move(task));
  ++waiting_;
  // Mostly the host runs ahead; now and then the device catches up a little.
  std::optional<DeviceAccess> access;
  if (random_() % 8 == 0)
    for (auto n = random_() % 8; n > 0 && step(access);) --n;
  while (waiting_ > most_waiting && step(access)) {
  }
}

void Scheduler::record(const std::shared_ptr<Mark>& mark, cudaStream_t stream) {
  std::lock_guard guard(lock_);
  if (const auto captured = captured_.find(stream); captured != captured_.end()) {
    captured_marks_[mark.get()] = captured->second;
    return;
  }
  captured_marks_.erase(mark.get());
  const std::uint64_t number = ++mark->recorded;
  enqueue(stream, {[this, mark, number] {
                     mark->passed = number;
                     mark->seconds = clock_;
                   },
                   {}});
}

bool Scheduler::wait(cudaStream_t stream, const std::shared_ptr<Mark>& mark) {
  std::lock_guard guard(lock_);
  if (const auto origin = captured_marks_.find(mark.get()); origin != captured_marks_.end()) {
    captured_[stream] = origin->second;  // the capture spreads
    return true;
  }
  if (mark->recorded == 0) return true;
  if (captured_.count(stream)) return false;
  if (mark->passed < mark->recorded)
    enqueue(stream, {{}, [mark, number = mark->recorded] { return mark->passed >= number; }});
  return true;
}

void Scheduler::run_now(cudaStream_t stream, const std::function<void()>& work) {
  synchronize(stream);
  std::lock_guard guard(lock_);
  const DeviceAccess access;
  work();
}

void Scheduler::synchronize(cudaStream_t stream) {
  run_until([&] { return streams_[stream].empty(); });
}

void Scheduler::synchronize(const Mark& mark) {
  run_until([&] { return mark.passed >= mark.recorded; });
}

void Scheduler::synchronize() {
  run_until([&] { return waiting_ == 0; });
}

bool Scheduler::query(cudaStream_t stream) {
  std::lock_guard guard(lock_);
  std::optional<DeviceAccess> access;
  for (auto n = random_() % 16; n > 0 && step(access);) --n;
  return streams_[stream].empty();
}

bool Scheduler::query(const Mark& mark) {
  std::lock_guard guard(lock_);
  std::optional<DeviceAccess> access;
  for (auto n = random_() % 16; n > 0 && step(access);) --n;
  return mark.passed >= mark.recorded;
}

void Scheduler::begin_capture(cudaStream_t stream) {
  std::lock_guard guard(lock_);
  captured_[stream] = std::make_shared<std::vector<Task>>();
}

std::vector<Task> Scheduler::end_capture(cudaStream_t stream) {
  std::lock_guard guard(lock_);
  const Captured all = captured_.at(stream);
  std::erase_if(captured_, [&](const auto& entry) { return entry.second == all; });
  std::erase_if(captured_marks_, [&](const auto& entry) { return entry.second == all; });
  return std::move(*all);
}

bool Scheduler::captures(cudaStream_t stream) {
  std::lock_guard guard(lock_);
  return captured_.count(stream) > 0;
}

}  // namespace zero::emulated
