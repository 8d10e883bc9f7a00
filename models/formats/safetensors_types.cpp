#include "models/formats/safetensors_types.h"

#include <c10/core/ScalarType.h>

#include <array>

#include "base/error.h"

namespace zero {
namespace {

const std::array<SafetensorsType, 21> types{{
    {"F32", 32, at::kFloat},      {"F16", 16, at::kHalf},       {"BF16", 16, at::kBFloat16},
    {"F64", 64, at::kDouble},     {"I64", 64, at::kLong},       {"I32", 32, at::kInt},
    {"I16", 16, at::kShort},      {"I8", 8, at::kChar},         {"U8", 8, at::kByte},
    {"BOOL", 8, at::kBool},       {"U16", 16, at::kUInt16},     {"U32", 32, at::kUInt32},
    {"U64", 64, at::kUInt64},     {"F8_E5M2", 8, std::nullopt}, {"F8_E4M3", 8, std::nullopt},
    {"F8_E8M0", 8, std::nullopt}, {"F6_E2M3", 6, std::nullopt}, {"F6_E3M2", 6, std::nullopt},
    {"F4", 4, std::nullopt},      {"C64", 64, std::nullopt},    {"F8_E4M3FNUZ", 8, std::nullopt},
}};

}  // namespace

const SafetensorsType* find_safetensors_type(const std::string& name) {
  for (const auto& type : types)
    if (name == type.name) return &type;
  return nullptr;
}

const char* safetensors_name(at::ScalarType wanted) {
  for (const auto& type : types)
    if (type.type == wanted) return type.name;
  throw InternalError(std::string("safetensors has no type for ") + c10::toString(wanted));
}

}  // namespace zero
