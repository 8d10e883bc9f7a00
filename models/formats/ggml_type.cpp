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
  std::string known;
  for (const std::string& type : ggml_type_names()) known += (known.empty() ? "" : ", ") + type;
  throw InputError(text("\"", name, "\" is no type of a GGUF file that is written here; known are ", known));
}

const std::vector<std::string>& ggml_type_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const GgmlType type : written) all.emplace_back(ggml_name(type));
    return all;
  }();
  return names;
}

}  // namespace zero
