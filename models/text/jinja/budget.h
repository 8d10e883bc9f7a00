#pragma once
// Budget: the limits of one rendering. The template of an untrusted model must not hang or fill the memory. Does not
// include LibTorch.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace zero::jinja {

struct Object;

struct Limits {
  std::int64_t operations = 20'000'000;  // expressions, statements and items; every 64 bytes of a string count as one
  int depth = 1000;                      // of nested expressions, statements and calls while rendering
  std::size_t output = std::size_t{64} << 20;   // bytes that statements write; text of macros and blocks counts again
  std::size_t memory = std::size_t{256} << 20;  // bytes of all live values
};

class Budget {
 public:
  explicit Budget(const Limits& limits) : limits_(limits) {}
  Budget(const Budget&) = delete;
  ~Budget();

  /// Each of these throws a TemplateError of kind `bound` that names the limit.
  void step(std::int64_t operations = 1) {
    if ((operations_ += operations) > limits_.operations) stop_operations();
  }
  void take(std::size_t bytes) {
    if ((memory_ += bytes) > limits_.memory) stop_memory(bytes);
  }
  void write(std::size_t bytes) {
    if ((output_ += bytes) > limits_.output) stop_output();
  }
  void give(std::size_t bytes) { memory_ -= bytes; }

  /// Keeps a mutable object until the rendering ends, and then empties it. Cycles of objects are thus freed, and long
  /// chains of objects are freed without deep recursion.
  void keep(std::shared_ptr<Object> object) { kept_.push_back(std::move(object)); }

  /// Counts one level of nesting while it lives.
  class Level {
   public:
    explicit Level(Budget& budget) : budget_(budget) {
      if (++budget.depth_ <= budget.limits_.depth) return;
      --budget.depth_;
      budget.stop_depth();
    }
    Level(const Level&) = delete;
    ~Level() { --budget_.depth_; }

   private:
    Budget& budget_;
  };

 private:
  [[noreturn]] void stop_operations() const;
  [[noreturn]] void stop_memory(std::size_t bytes);
  [[noreturn]] void stop_output() const;
  [[noreturn]] void stop_depth() const;

  Limits limits_;
  std::int64_t operations_ = 0;
  std::size_t memory_ = 0, output_ = 0;
  int depth_ = 0;
  std::vector<std::shared_ptr<Object>> kept_;
};

}  // namespace zero::jinja
