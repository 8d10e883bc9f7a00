#pragma once
// Rank0Scope: marks the work of one rank while the others wait for it. It must not make collectives.

namespace zero {

/// While it lives, calls of communicators of several ranks on this thread throw InputError with the remedy: no other
/// rank would join them.
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
