#include "comm/mpi/non_temporal_copy.h"

#include <immintrin.h>

#include <cstdint>
#include <cstring>

namespace zero {

void stream_copy(std::byte* to, const std::byte* from, std::size_t bytes) {
  constexpr std::size_t line = 64;
  if (bytes < 16 * line) {
    if (bytes) std::memcpy(to, from, bytes);
    return;
  }
  const std::size_t head = (line - reinterpret_cast<std::uintptr_t>(to) % line) % line;
  std::memcpy(to, from, head);
  std::size_t at = head;
  for (; at + line <= bytes; at += line) {
    const __m256i low = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + at));
    const __m256i high = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + at + 32));
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to + at), low);
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to + at + 32), high);
  }
  _mm_sfence();
  std::memcpy(to + at, from + at, bytes - at);
}

}  // namespace zero
