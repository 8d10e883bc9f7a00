#pragma once
// Rank0Scope: marks work that one rank does while the others wait. Such work must not call collectives.

namespace zero {

/// While a Rank0Scope lives, every collective that this thread calls on several ranks throws InputError with the
/// remedy. No other rank would join such a call.
class Rank0Scope {
 public:
  Rank0Scope() { ++depth; }
  ~Rank0Scope() { --depth; }
  Rank0Scope(const Rank0Scope&) = delete;
  Rank0Scope& operator=(const Rank0Scope&) = delete;

  static bool is_active() { return depth > 0; }

 private:
  static inline thread_local int depth = 0;
};

}  // namespace zero
