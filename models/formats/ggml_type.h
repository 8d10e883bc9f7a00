#pragma once
// The tensor types of GGUF files that zero writes, by name.
#include <string>
#include <vector>

#include "base/numbers/ggml_type.h"

namespace zero {

/// "F32", "F16", "BF16", "Q8_0" or "Q4_0", in any case. Throws InputError for other names.
GgmlType ggml_type_of(const std::string& name);
const std::vector<std::string>& ggml_type_names();

}  // namespace zero
