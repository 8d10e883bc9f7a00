#include "tests/cuda/emulated/kernel_host.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "tests/cuda/emulated/device.h"

namespace zero::emulated {
namespace {

constexpr std::size_t stack_words = 8 << 10;

// zero_switch_stack(&left, entered): saves the registers that a call keeps on this stack and goes on where `entered`
// was left.
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
    // The stack looks as if the thread had been left at the entry of enter(): a call aligns it so.
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

using Warp = std::vector<unsigned>;  // the numbers of its threads, in the order in which they run

/// One block of a launch. A warp runs from one barrier of the block to the next before another one does. Warps are
/// thereby as far apart as a GPU may let them be. A warp's lanes meet at shuffles. A thread that reaches neither shares
/// its fiber with the next one.
class Block {
 public:
  Block(const Launch& launch, const std::function<void()>& body, const std::vector<Warp>& warps)
      : body_(body), warps_(warps), threads_(launch.threads().x), shared_(launch.shared() + 16) {
    place_.threads = launch.threads();
    place_.blocks = launch.blocks();
  }

  void run(unsigned index) {
    place_.block = {index % place_.blocks.x, index / place_.blocks.x, 0};
    std::fill(shared_.begin(), shared_.end(), std::byte{0xff});
    arrays_.clear();
    current_ = this;
    for (Thread& thread : threads_) thread.state = State::fresh;
    for (bool going = true; going;) {
      going = false;
      for (const Warp& warp : warps_) going |= run_to_barrier(warp);
    }
    current_ = nullptr;
  }

  void wait_for_block() { pause(State::at_barrier); }

  /// Two buffers in turn: nobody gives again into one before all lanes have read it.
  std::uint64_t exchange(std::uint64_t value, int mask) {
    Thread& self = threads_[running_];
    const Thread& other = threads_[running_ ^ static_cast<unsigned>(mask)];
    const int turn = self.turn ^= 1;
    self.given[turn] = value;
    pause(State::at_shuffle);  // all lanes of the warp give theirs
    return other.given[turn];
  }

  void share(void* array, std::size_t bytes) {
    if (std::find(arrays_.begin(), arrays_.end(), array) != arrays_.end()) return;
    arrays_.push_back(array);
    std::memset(array, 0xff, bytes);
  }

  static Block& current() { return *current_; }
  Coordinates& place() { return place_; }
  void* shared() { return shared_.data() + (16 - reinterpret_cast<std::uintptr_t>(shared_.data()) % 16) % 16; }

 private:
  enum class State : std::uint8_t { fresh, at_shuffle, at_barrier, ended };
  struct Thread {
    std::unique_ptr<Fiber> fiber;
    std::uint64_t given[2]{};
    int turn = 0;
    State state = State::fresh;
  };

  void pause(State state) {
    Thread& self = threads_[running_];
    self.state = state;
    self.fiber->pause();
  }

  /// False when no thread of the warp is left.
  bool run_to_barrier(const Warp& warp) {
    bool left = false;
    for (unsigned t : warp)
      if (threads_[t].state != State::ended) advance(t);
    for (bool shuffling = true; shuffling;) {
      shuffling = left = false;
      for (unsigned t : warp) {
        if (threads_[t].state == State::at_shuffle) advance(t);
        shuffling |= threads_[t].state == State::at_shuffle;
        left |= threads_[t].state == State::at_barrier;
      }
    }
    return left;
  }

  /// Runs the thread until it pauses or ends.
  void advance(unsigned t) {
    Thread& thread = threads_[t];
    running_ = t;
    place_.thread = {t, 0, 0};
    const bool fresh = thread.state == State::fresh;
    if (fresh) {
      if (spare_.empty()) spare_.push_back(std::make_unique<Fiber>());
      thread.fiber = std::move(spare_.back());
      spare_.pop_back();
    }
    if (!thread.fiber->run(fresh ? &body_ : nullptr)) return;
    thread.state = State::ended;
    spare_.push_back(std::move(thread.fiber));
  }

  static thread_local Block* current_;
  static thread_local std::vector<std::unique_ptr<Fiber>> spare_;
  const std::function<void()>& body_;
  const std::vector<Warp>& warps_;
  std::vector<Thread> threads_;
  std::vector<std::byte> shared_;
  std::vector<void*> arrays_;
  Coordinates place_;
  unsigned running_ = 0;
};

thread_local Block* Block::current_ = nullptr;
thread_local std::vector<std::unique_ptr<Fiber>> Block::spare_;

std::vector<Warp> warps_in_some_order(unsigned threads, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<Warp> warps((threads + 31) / 32);
  for (unsigned t = 0; t < threads; ++t) warps[t / 32].push_back(t);
  for (Warp& warp : warps) std::shuffle(warp.begin(), warp.end(), random);
  std::shuffle(warps.begin(), warps.end(), random);
  return warps;
}

}  // namespace

Coordinates& coordinates() { return Block::current().place(); }
void sync_threads() { Block::current().wait_for_block(); }
std::uint64_t exchange(std::uint64_t value, int mask) { return Block::current().exchange(value, mask); }
void share(void* array, std::size_t bytes) { Block::current().share(array, bytes); }
void* shared_bytes() { return Block::current().shared(); }

void Launch::operator<<(std::function<void()> body) const {
  static std::atomic<unsigned> launches{0};
  if (threads_.x > 1024 || threads_.x == 0 || blocks_.x == 0 || shared_ > (48 << 10))
    not_emulated("a launch that a GPU would refuse");
  if (threads_.x % 32 != 0 && threads_.x != 1) not_emulated("a block that is not whole warps");
  const unsigned turn = launches++;
  Scheduler::get().enqueue(stream_, {[launch = *this, body = std::move(body), turn] {
                                       const std::vector<Warp> warps = warps_in_some_order(launch.threads().x, turn);
                                       Block block(launch, body, warps);
                                       for (unsigned b = 0; b < launch.blocks().x * launch.blocks().y; ++b)
                                         block.run(b);
                                     },
                                     {}});
}

}  // namespace zero::emulated
