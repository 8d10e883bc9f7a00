#pragma once
// Order of work on a device that runs behind its host. On the CPU, where every call returns finished, all of it does
// nothing.
//
// c10::Event and c10::Stream with two things that they lack: they can be made for the CPU, and a side stream orders
// itself after the current one and the current one after it. Whoever writes memory that another stream may still read
// waits for the reader's event, and the other way round; nothing is left to an allocator's guess.
#include <c10/core/Device.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>
#include <c10/core/StreamGuard.h>

#include <optional>

namespace zero {

/// A point in the work of one stream: "all that was issued so far".
class Event {
 public:
  Event() = default;
  explicit Event(c10::Device device);

  /// Records what the current stream holds so far.
  void set();
  /// The current stream goes on only when what was recorded is done. Nothing before the first set().
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

/// A stream beside the one that computes, from LibTorch's pool. On the CPU none: its work is the caller's.
class SideStream {
 public:
  SideStream() = default;
  /// `urgent`: what is ready in it gets multiprocessors before other streams' work that has not begun. For
  /// communication, which would wait behind every large kernel otherwise.
  explicit SideStream(c10::Device device, bool urgent = false);

  /// While the result lives, the side stream is the current one.
  class Guard {
   public:
    explicit Guard(const std::optional<c10::Stream>& stream) {
      if (stream) guard_.reset_stream(*stream);
    }

   private:
    c10::OptionalStreamGuard guard_;
  };
  [[nodiscard]] Guard enter() const { return Guard(stream_); }

  /// The side stream goes on only when what the current stream holds so far is done.
  void follow_current();
  /// The current stream goes on only when what the side stream holds so far is done.
  void join();

 private:
  std::optional<c10::Stream> stream_;  // none: the CPU
  Event here_, there_;
};

/// The current stream for as long as it lives: one of its own, not the device's default. Owned by main's thread.
class ComputeStream {
 public:
  explicit ComputeStream(c10::Device device) : stream_(device), guard_(stream_.enter()) {}

 private:
  SideStream stream_;
  SideStream::Guard guard_;
};

}  // namespace zero
