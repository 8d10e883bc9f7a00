#include "base/numbers/ggml_type.h"

#include "base/error.h"
#include "base/log.h"

namespace zero {
namespace {

struct Row {
  GgmlType type;
  const char* name;
  std::int64_t block, bytes;
};
constexpr Row rows[] = {{GgmlType::f32, "F32", 1, 4},
                        {GgmlType::f16, "F16", 1, 2},
                        {GgmlType::bf16, "BF16", 1, 2},
                        {GgmlType::q8_0, "Q8_0", q8_block, 2 + 32},
                        {GgmlType::q4_0, "Q4_0", q8_block, 2 + 16},
                        {GgmlType::q6_k, "Q6_K", 256, 128 + 64 + 16 + 2}};

const Row& row_of(GgmlType type) {
  for (const Row& row : rows)
    if (row.type == type) return row;
  throw InternalError("unknown ggml type");
}

}  // namespace

const char* ggml_name(GgmlType type) { return row_of(type).name; }
std::int64_t ggml_block(GgmlType type) { return row_of(type).block; }
std::int64_t ggml_block_bytes(GgmlType type) { return row_of(type).bytes; }

std::int64_t ggml_bytes(GgmlType type, std::int64_t elements) {
  const Row& row = row_of(type);
  ZERO_CHECK(elements % row.block == 0, text(elements, " values are no whole number of blocks of ", row.name));
  return elements / row.block * row.bytes;
}

}  // namespace zero
