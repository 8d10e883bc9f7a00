#include "zero/core/kept_inputs.h"

#include <ATen/ATen.h>

#include "base/error.h"
#include "base/log.h"
#include "base/memory_tracker.h"
#include "offload/memory/host_tensor.h"

namespace zero {
namespace {

constexpr std::size_t most_leaving = 2;

/// The beginning of a buffer in the shape and type of `x`.
at::Tensor view_of(const at::Tensor& buffer, const at::Tensor& x) {
  return buffer.narrow(0, 0, std::int64_t(x.nbytes())).view(x.scalar_type()).view(x.sizes());
}

}  // namespace

at::Tensor HostBuffers::take(std::int64_t bytes) {
  if (const auto found = free_.lower_bound(bytes); found != free_.end()) return free_.extract(found).mapped().buffer;
  if (!free_.empty()) {  // the largest is too small
    const auto small = free_.extract(std::prev(free_.end()));
    small.mapped().copied.wait_on_host();
    bytes_ -= small.key();
  }
  bytes_ += bytes;
  const CategoryScope scope(MemoryCategory::other);
  if (device_.is_meta()) return at::empty({bytes}, at::TensorOptions().dtype(at::kByte).device(device_));
  return host_tensor(bytes, at::kByte, {MemoryCategory::other, device_});
}

void HostBuffers::give_back(at::Tensor buffer, Event copied) {
  const std::int64_t bytes = buffer.numel();
  free_.emplace(bytes, Free{std::move(buffer), std::move(copied)});
}

KeptInputs::~KeptInputs() {
  try {
    let_go(0);
    for (Input& input : inputs_) {
      if (input.arriving.defined()) input.copied.wait();
      if (input.host.defined()) home_.buffers.give_back(std::move(input.host), std::move(input.copied));
    }
  } catch (const std::exception& error) {  // a device error that was raised elsewhere
    log_error(std::string("a pass could not let go of its inputs: ") + error.what());
  }
}

// The freed memory of a tensor may be reused by the current stream, which must therefore wait for the copy first.
void KeptInputs::let_go(std::size_t most) {
  while (leaving_.size() > most) {
    Input& input = inputs_[std::size_t(leaving_.front())];
    leaving_.pop_front();
    input.copied.wait();
    input.leaving.reset();
  }
}

void KeptInputs::keep(int unit, const at::Tensor& x) {
  Input& input = inputs_[std::size_t(unit)];
  ZERO_CHECK(!input.host.defined(), "a unit keeps one input");
  input.shape = x.sizes().vec();
  input.options = x.options();
  input.leaving = x.contiguous();
  input.host = home_.buffers.take(std::int64_t(x.nbytes()));
  let_go(most_leaving - 1);
  home_.copies.follow_current();
  const auto there = home_.copies.enter();
  if (x.numel() > 0) view_of(input.host, x).copy_(input.leaving, /*non_blocking=*/true);
  input.copied = Event(x.device());
  input.copied.set();
  leaving_.push_back(unit);
}

void KeptInputs::fetch(int unit) {
  if (unit < 0 || unit >= int(inputs_.size())) return;
  Input& input = inputs_[std::size_t(unit)];
  if (!input.host.defined() || input.arriving.defined()) return;
  let_go(0);
  input.arriving = at::empty(input.shape, input.options);
  home_.copies.follow_current();
  const auto there = home_.copies.enter();
  if (input.arriving.numel() > 0) input.arriving.copy_(view_of(input.host, input.arriving), /*non_blocking=*/true);
  input.copied.set();
}

at::Tensor KeptInputs::take(int unit) {
  fetch(unit);
  Input& input = inputs_[std::size_t(unit)];
  ZERO_CHECK(input.arriving.defined(), "a unit takes the input that it kept");
  input.copied.wait();
  home_.buffers.give_back(std::move(input.host), std::move(input.copied));
  return std::move(input.arriving);
}

}  // namespace zero
