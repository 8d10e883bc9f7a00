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
template <class Type>
constexpr Row block_row(GgmlType type, const char* name) {
  return {type, name, Type::values, Type::bytes};
}

constexpr Row rows[] = {{GgmlType::f32, "F32", 1, 4},
                        {GgmlType::f16, "F16", 1, 2},
                        {GgmlType::bf16, "BF16", 1, 2},
                        block_row<ggml::Q8_0>(GgmlType::q8_0, "Q8_0"),
                        block_row<ggml::Q4_0>(GgmlType::q4_0, "Q4_0"),
                        block_row<ggml::Q4_1>(GgmlType::q4_1, "Q4_1"),
                        block_row<ggml::Q5_0>(GgmlType::q5_0, "Q5_0"),
                        block_row<ggml::Q5_1>(GgmlType::q5_1, "Q5_1"),
                        block_row<ggml::Q2_K>(GgmlType::q2_k, "Q2_K"),
                        block_row<ggml::Q3_K>(GgmlType::q3_k, "Q3_K"),
                        block_row<ggml::Q4_K>(GgmlType::q4_k, "Q4_K"),
                        block_row<ggml::Q5_K>(GgmlType::q5_k, "Q5_K"),
                        block_row<ggml::Q6_K>(GgmlType::q6_k, "Q6_K"),
                        block_row<ggml::IQ4_NL>(GgmlType::iq4_nl, "IQ4_NL"),
                        block_row<ggml::IQ4_XS>(GgmlType::iq4_xs, "IQ4_XS")};

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
