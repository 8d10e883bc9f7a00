#include "comm/mpi/non_temporal_copy.h"

#include <cstdint>
#include <cstring>

#include "base/simd/targets.h"

#include <hwy/cache_control.h>
#include <hwy/highway.h>

namespace zero {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using Bytes = hn::ScalableTag<std::uint8_t>;

void stream_line(std::uint8_t* to, const std::uint8_t* from, std::size_t line) {
  const Bytes d;
  for (std::size_t i = 0; i < line; i += hn::MaxLanes(d)) hn::Stream(hn::LoadU(d, from + i), d, to + i);
}

}  // namespace

void stream_copy(std::byte* to, const std::byte* from, std::size_t bytes) {
  constexpr std::size_t line = 64;
  if (bytes < 16 * line) {
    if (bytes) std::memcpy(to, from, bytes);
    return;
  }
  const std::size_t head = (line - reinterpret_cast<std::uintptr_t>(to) % line) % line;
  std::memcpy(to, from, head);
  std::size_t at = head;
  for (; at + line <= bytes; at += line)
    stream_line(reinterpret_cast<std::uint8_t*>(to + at), reinterpret_cast<const std::uint8_t*>(from + at), line);
  hwy::FlushStream();
  std::memcpy(to + at, from + at, bytes - at);
}

}  // namespace zero
