#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "offload/disk/block_io.h"

namespace zero {
namespace {

class ThreadIo final : public BlockIo {
 public:
  explicit ThreadIo(int threads) {
    for (int i = 0; i < threads; ++i) {
      threads_.emplace_back([this](const std::stop_token& stop) { serve(stop); });
    }
  }

  const char* name() const override { return "pread and pwrite in threads"; }

  void submit(std::uint64_t tag, const Transfer& transfer) override {
    {
      const std::lock_guard lock(mutex_);
      asked_.push_back({tag, transfer});
    }
    changed_.notify_all();
  }

  Completion wait_any() override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !done_.empty(); });
    const Completion first = done_.front();
    done_.pop_front();
    return first;
  }

 private:
  struct Asked {
    std::uint64_t tag;
    Transfer transfer;
  };

  void serve(const std::stop_token& stop) {
    for (;;) {
      std::unique_lock lock(mutex_);
      if (!changed_.wait(lock, stop, [this] { return !asked_.empty(); })) return;
      const Asked next = asked_.front();
      asked_.pop_front();
      lock.unlock();
      const Transfer& t = next.transfer;
      const ssize_t moved = t.write ? ::pwrite(t.descriptor, t.data, t.bytes, t.offset)
                                    : ::pread(t.descriptor, t.data, t.bytes, t.offset);
      const std::int64_t result = moved < 0 ? -static_cast<std::int64_t>(errno) : moved;
      lock.lock();
      done_.push_back({next.tag, result});
      lock.unlock();
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<Asked> asked_;
  std::deque<Completion> done_;
  std::vector<std::jthread> threads_;  // last: the threads stop before other members are destroyed
};

}  // namespace

std::unique_ptr<BlockIo> make_thread_io(int threads) { return std::make_unique<ThreadIo>(threads); }

}  // namespace zero
