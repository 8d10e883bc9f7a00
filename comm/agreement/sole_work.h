#pragma once
// SoleWork: marks the work of one rank while the others wait for it. It must not make collectives.

namespace zero {

/// While it lives, calls of communicators of several ranks on this thread throw InputError with the remedy: no other
/// rank would join them.
class SoleWork {
 public:
  SoleWork() { ++works; }
  ~SoleWork() { --works; }
  SoleWork(const SoleWork&) = delete;
  SoleWork& operator=(const SoleWork&) = delete;

  static bool is_under_way() { return works > 0; }

 private:
  static inline thread_local int works = 0;
};

}  // namespace zero
