#include "base/numbers/ggml_type.h"

#include "base/error.h"
#include "base/log.h"
#include "base/numbers/ggml_codes.h"

namespace zero {
namespace {

struct Row {
  GgmlType type;
  const char* name;
  std::int64_t block, bytes;
};
constexpr Row rows[] = {
    {GgmlType::f32, "F32", 1, 4},
    {GgmlType::f16, "F16", 1, 2},
    {GgmlType::bf16, "BF16", 1, 2},
#define BLOCK_TYPE(type, Layout) {GgmlType::type, #Layout, ggml::Layout::values, ggml::Layout::bytes},
#include "base/numbers/ggml_block_types.inl"
};

const Row& row_of(GgmlType type) {
  for (const Row& row : rows)
    if (row.type == type) return row;
  throw InternalError("unknown ggml type");
}

}  // namespace

std::vector<GgmlType> ggml_types() {
  std::vector<GgmlType> all;
  for (const Row& row : rows) all.push_back(row.type);
  return all;
}

std::optional<GgmlType> ggml_type_of_number(std::uint32_t number) {
  for (const Row& row : rows)
    if (static_cast<std::uint32_t>(row.type) == number) return row.type;
  return std::nullopt;
}

const char* ggml_name(GgmlType type) { return row_of(type).name; }
std::int64_t ggml_block(GgmlType type) { return row_of(type).block; }
std::int64_t ggml_block_bytes(GgmlType type) { return row_of(type).bytes; }

std::int64_t ggml_bytes(GgmlType type, std::int64_t elements) {
  const Row& row = row_of(type);
  ZERO_CHECK(elements % row.block == 0, text(elements, " values are no whole number of blocks of ", row.name));
  return elements / row.block * row.bytes;
}

}  // namespace zero
