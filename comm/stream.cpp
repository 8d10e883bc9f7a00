#include "comm/stream.h"

#include <c10/core/impl/VirtualGuardImpl.h>

namespace zero {
namespace {

// CPU and Meta tensors are finished when a call returns.
bool runs_behind(c10::Device device) { return !device.is_cpu() && !device.is_meta(); }

c10::Stream current_stream(c10::Device device) { return c10::impl::VirtualGuardImpl(device.type()).getStream(device); }

}  // namespace

Event::Event(c10::Device device) {
  if (runs_behind(device)) device_ = device;
}

void Event::set() {
  is_set_ = true;
  if (!device_) return;
  if (!event_) event_.emplace(device_->type(), c10::EventFlag::PYTORCH_DEFAULT);
  event_->record(current_stream(*device_));
}

void Event::wait() const {
  if (device_ && is_set_) event_->block(current_stream(*device_));
}

bool Event::done() const { return !device_ || !is_set_ || event_->query(); }

void Event::wait_on_host() const {
  if (device_ && is_set_) event_->synchronize();
}

SideStream::SideStream(c10::Device device, bool urgent) : here_(device), there_(device) {
  if (runs_behind(device)) stream_ = c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device, urgent);
}

void SideStream::follow_current() {
  here_.set();
  const Guard guard = enter();
  here_.wait();
}

void SideStream::join() {
  {
    const Guard guard = enter();
    there_.set();
  }
  there_.wait();
}

}  // namespace zero
