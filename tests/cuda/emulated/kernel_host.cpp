#include "tests/cuda/emulated/kernel_host.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "tests/cuda/emulated/device.h"

namespace zero::emulated {
namespace {

constexpr std::size_t stack_words = 8 << 10;

// zero_switch_stack(&left, entered): saves the registers that a call keeps on this stack and goes on where `entered` was left.
asm(R"(
.globl zero_switch_stack
.hidden zero_switch_stack
zero_switch_stack:
  push %rbp
  push %rbx
  push %r12
  push %r13
  push %r14
  push %r15
  mov %rsp, (%rdi)
  mov %rsi, %rsp
  pop %r15
  pop %r14
  pop %r13
  pop %r12
  pop %rbx
  pop %rbp
  ret
)");
extern "C" void zero_switch_stack(void** left, void* entered);

/// A stack that runs one thread of a block after the other.
class Fiber {
 public:
  Fiber() : stack_(new std::uintptr_t[stack_words]) {
    // As if it had been left at the entry of enter(), whose stack is aligned as a call leaves it.
    std::uintptr_t* top = stack_.get() + stack_words - 1;
    top -= (reinterpret_cast<std::uintptr_t>(top) / sizeof *top + 1) % 2;
    *--top = reinterpret_cast<std::uintptr_t>(&Fiber::enter);
    inside_ = top - 6;
  }

  /// Goes on until the body has ended or is paused; true when it has ended.
  bool run(const std::function<void()>* body) {
    if (body) body_ = body;
    current_ = this;
    zero_switch_stack(&outside_, inside_);
    return !body_;
  }
  void pause() { zero_switch_stack(&inside_, outside_); }

 private:
  [[noreturn]] static void enter() {
    Fiber& own = *current_;
    for (;;) {
      (*own.body_)();
      own.body_ = nullptr;
      own.pause();
    }
  }

  static thread_local Fiber* current_;
  std::unique_ptr<std::uintptr_t[]> stack_;
  void *inside_ = nullptr, *outside_ = nullptr;
  const std::function<void()>* body_ = nullptr;
};

thread_local Fiber* Fiber::current_ = nullptr;

/// One block of a launch. Threads that reach no barrier share one fiber after the other; a thread that waits keeps its own.
class Block {
 public:
  Block(const Launch& launch, const std::function<void()>& body, const std::vector<unsigned>& order)
      : body_(body), order_(order), threads_(order.size()), shared_(launch.shared() + 16) {
    place_.threads = launch.threads();
    place_.blocks = launch.blocks();
  }

  void run(unsigned index) {
    place_.block = {index % place_.blocks.x, index / place_.blocks.x, 0};
    std::fill(shared_.begin(), shared_.end(), std::byte{0xff});
    current_ = this;
    std::vector<unsigned> going = order_;
    for (unsigned t : going) threads_[t].begun = false;
    while (!going.empty()) going.erase(std::remove_if(going.begin(), going.end(), [this](unsigned t) { return advance(t); }), going.end());
    current_ = nullptr;
  }

  void wait() { threads_[running_].fiber->pause(); }

  /// Two buffers in turn: nobody gives again into one before all have read it.
  std::uint64_t exchange(std::uint64_t value, int mask) {
    Thread& self = threads_[running_];
    const Thread& other = threads_[running_ ^ static_cast<unsigned>(mask)];
    const int turn = self.turn ^= 1;
    self.given[turn] = value;
    wait();  // all threads of the block give theirs
    return other.given[turn];
  }

  static Block& current() { return *current_; }
  Coordinates& place() { return place_; }
  void* shared() { return shared_.data() + (16 - reinterpret_cast<std::uintptr_t>(shared_.data()) % 16) % 16; }

 private:
  struct Thread {
    std::unique_ptr<Fiber> fiber;
    std::uint64_t given[2]{};
    int turn = 0;
    bool begun = false;
  };

  /// Runs the thread to its next barrier or its end; true at its end.
  bool advance(unsigned t) {
    Thread& thread = threads_[t];
    running_ = t;
    place_.thread = {t, 0, 0};
    if (!thread.begun) {
      if (spare_.empty()) spare_.push_back(std::make_unique<Fiber>());
      thread.fiber = std::move(spare_.back());
      spare_.pop_back();
    }
    const bool ended = thread.fiber->run(std::exchange(thread.begun, true) ? nullptr : &body_);
    if (ended) spare_.push_back(std::move(thread.fiber));
    return ended;
  }

  static thread_local Block* current_;
  static thread_local std::vector<std::unique_ptr<Fiber>> spare_;
  const std::function<void()>& body_;
  const std::vector<unsigned>& order_;
  std::vector<Thread> threads_;
  std::vector<std::byte> shared_;
  Coordinates place_;
  unsigned running_ = 0;
};

thread_local Block* Block::current_ = nullptr;
thread_local std::vector<std::unique_ptr<Fiber>> Block::spare_;

}  // namespace

Coordinates& coordinates() { return Block::current().place(); }
void sync_threads() { Block::current().wait(); }
std::uint64_t exchange(std::uint64_t value, int mask) { return Block::current().exchange(value, mask); }
void* shared_bytes() { return Block::current().shared(); }

void Launch::operator<<(std::function<void()> body) const {
  static std::atomic<unsigned> launches{0};
  if (threads_.x > 1024 || threads_.x == 0 || blocks_.x == 0 || shared_ > (48 << 10)) not_emulated("a launch that a GPU would refuse");
  if (threads_.x % 32 != 0 && threads_.x != 1) not_emulated("a block that is not whole warps");
  const unsigned turn = launches++;
  Scheduler::get().enqueue(stream_, {[launch = *this, body = std::move(body), turn] {
                                       std::vector<unsigned> order(launch.threads().x);
                                       std::iota(order.begin(), order.end(), 0u);
                                       std::shuffle(order.begin(), order.end(), std::mt19937(turn));
                                       Block block(launch, body, order);
                                       for (unsigned b = 0; b < launch.blocks().x * launch.blocks().y; ++b) block.run(b);
                                     }, {}});
}

}  // namespace zero::emulated
