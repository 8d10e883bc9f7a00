#pragma once
// Orders work on a device that runs asynchronously. On the CPU every call has finished when it returns, so these
// classes do nothing there.
//
// These classes add two things to c10::Event and c10::Stream. Events and streams can be made for the CPU, and a side
// stream and the current stream can wait for each other. Code that writes memory that another stream may still read
// waits for the reader's event, and vice versa. Nothing relies on an allocator's heuristics.
#include <c10/core/Device.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>
#include <c10/core/StreamGuard.h>

#include <optional>

namespace zero {

/// A point in the work of one stream: "everything issued so far".
class Event {
 public:
  Event() = default;
  explicit Event(c10::Device device);

  /// Records the current stream's work so far.
  void set();
  /// Makes the current stream wait for the recorded work. Does nothing before the first set().
  void wait() const;
  /// True if the work is done, without waiting.
  bool done() const;
  /// Makes the host wait.
  void wait_on_host() const;

 private:
  std::optional<c10::Device> device_;  // none: the CPU
  mutable std::optional<c10::Event> event_;
  bool is_set_ = false;
};

/// A second stream from LibTorch's pool. On the CPU there is no stream, and its work runs directly.
class SideStream {
 public:
  SideStream() = default;
  /// If `urgent`, this stream's ready work gets multiprocessors before pending work of other streams. Use it for
  /// communication, which would otherwise wait for every large kernel.
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

  /// Makes the side stream wait for the current stream's work so far.
  void follow_current();
  /// Makes the current stream wait for the side stream's work so far.
  void join();

 private:
  std::optional<c10::Stream> stream_;  // none: the CPU
  Event here_, there_;
};

/// While this object lives, a new stream is the current one instead of the device's default stream. The main thread
/// owns the object.
class ComputeStream {
 public:
  explicit ComputeStream(c10::Device device) : stream_(device), guard_(stream_.enter()) {}

 private:
  SideStream stream_;
  SideStream::Guard guard_;
};

}  // namespace zero
