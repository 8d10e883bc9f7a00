// AMX tiles of 16 rows by 64 bytes (Intel Architecture Instruction Set Extensions, chapter 3), for files compiled with
// AMX. Include it inside an anonymous namespace.

/// Asks the processor itself, since Clang 14 has no name for AMX.
bool processor_has_tiles() {
  constexpr unsigned extended_features = 7, tiles = 1u << 24, tiles_of_bf16 = 1u << 22;
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid_count(extended_features, 0, &eax, &ebx, &ecx, &edx) && (edx & tiles) && (edx & tiles_of_bf16);
}

/// Returns whether the processor has tiles for bf16 and Linux lets this process use them.
bool has_tiles() {
  constexpr long request_permission = 0x1023, tile_data = 18;  // ARCH_REQ_COMP_PERM, XFEATURE_XTILEDATA
  static const bool has = processor_has_tiles() && syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
  return has;
}

struct alignas(64) TilePalette {
  std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
  std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

/// Sets up the thread's eight tiles for the lifetime of the object.
class TileSetting {
 public:
  // gcc 12 assumes that the palette has 8 bytes and that tile loads do not read memory. The empty assembly makes gcc
  // store everything first.
  TileSetting() {
    static const TilePalette palette;
    asm volatile("" ::"m"(palette) : "memory");
    _tile_loadconfig(&palette);
  }
  ~TileSetting() { _tile_release(); }
  TileSetting(const TileSetting&) = delete;
  TileSetting& operator=(const TileSetting&) = delete;
};
