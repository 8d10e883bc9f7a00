#pragma once
// The names of data files: a file's extension decides how it is read.
#include <string>

namespace zero {

/// "txt", "jsonl" (for .json too: both hold examples) or "bin"; empty for any other.
std::string data_kind(const std::string& path);

/// The problem with a name in data.train or data.validation, with the remedy: a folder, a pattern, or an unsupported
/// extension. Empty for a good name, even if no such file exists.
std::string why_no_data_name(const std::string& path);

}  // namespace zero
