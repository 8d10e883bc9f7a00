#pragma once
// Order of work on a device that runs behind its host. On the CPU, where every call returns finished, all of it does
// nothing.
//
// A mark stands for "all that was issued so far"; a lane is a second sequence of work beside the current one. Whoever
// writes memory that the other side may still read waits for the reader's mark, and the other way round; nothing is
// left to an allocator's guess.
#include <c10/core/Device.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>
#include <c10/core/StreamGuard.h>

#include <optional>

namespace zero {

/// A point in the work of one stream.
class StreamMark {
 public:
  StreamMark() = default;
  explicit StreamMark(c10::Device device);

  /// What the current stream holds so far.
  void set();
  /// The current stream goes on only when what was marked is done. Nothing before the first set().
  void wait() const;
  /// Whether it is done, as the host sees it.
  bool done() const;
  /// The host waits.
  void wait_on_host() const;

 private:
  std::optional<c10::Device> device_;  // none: the CPU
  mutable std::optional<c10::Event> event_;
  bool is_set_ = false;
};

/// A stream beside the one that computes.
class StreamLane {
 public:
  StreamLane() = default;
  /// `urgent`: what is ready in it gets multiprocessors before other lanes' work that has not begun. For communication,
  /// which would wait behind every large kernel otherwise.
  explicit StreamLane(c10::Device device, bool urgent = false);

  /// While the result lives, the lane is the current stream.
  class Guard {
   public:
    explicit Guard(const std::optional<c10::Stream>& stream) {
      if (stream) guard_.reset_stream(*stream);
    }

   private:
    c10::OptionalStreamGuard guard_;
  };
  [[nodiscard]] Guard enter() const { return Guard(stream_); }

  /// The lane goes on only when what the current stream holds so far is done.
  void follow_current();
  /// The current stream goes on only when what the lane holds so far is done.
  void join();

 private:
  std::optional<c10::Stream> stream_;  // none: the CPU
  StreamMark here_, there_;
};

/// The current stream for as long as it lives: one of its own, not the device's default. Owned by main's thread.
class ComputeStream {
 public:
  explicit ComputeStream(c10::Device device) : lane_(device), guard_(lane_.enter()) {}

 private:
  StreamLane lane_;
  StreamLane::Guard guard_;
};

}  // namespace zero
