#pragma once
// Steps of CRC-32C (Castagnoli's polynomial, as in iSCSI), computed by the processor's own instruction.
#include <cstdint>

#if defined(__SSE4_2__)
#include <nmmintrin.h>
#elif defined(__ARM_FEATURE_CRC32)
#include <arm_acle.h>
#else
#error "CRC-32C takes SSE 4.2 or ARM's crc extension"
#endif

namespace zero {

/// `crc` after eight more bytes; its upper half is zero.
inline std::uint64_t crc32c(std::uint64_t crc, std::uint64_t word) {
#if defined(__SSE4_2__)
  return _mm_crc32_u64(crc, word);
#else
  return __crc32cd(static_cast<std::uint32_t>(crc), word);
#endif
}

/// `crc` after one more byte.
inline std::uint32_t crc32c_byte(std::uint32_t crc, std::uint8_t byte) {
#if defined(__SSE4_2__)
  return _mm_crc32_u8(crc, byte);
#else
  return __crc32cb(crc, byte);
#endif
}

}  // namespace zero
