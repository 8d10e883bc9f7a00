#include "models/formats/ggml_type.h"

#include <algorithm>
#include <cctype>

#include "base/error.h"
#include "base/log.h"

namespace zero {
namespace {

constexpr GgmlType written[] = {GgmlType::f32, GgmlType::f16, GgmlType::bf16, GgmlType::q8_0, GgmlType::q4_0};

}  // namespace

GgmlType ggml_type_of(const std::string& name) {
  std::string upper = name;
  std::transform(upper.begin(), upper.end(), upper.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  for (const GgmlType type : written)
    if (upper == ggml_name(type)) return type;
  throw InputError(
      text("\"", name, "\" is no type of a GGUF file that is written here; known are F32, F16, BF16, Q8_0 and Q4_0"));
}

const std::vector<std::string>& ggml_type_names() {
  static const std::vector<std::string> names{"F32", "F16", "BF16", "Q8_0", "Q4_0"};
  return names;
}

}  // namespace zero
