#pragma once
// The names of data files: how a file is read follows from the end of its name.
#include <string>

namespace zero {

/// "txt", "jsonl" (for .json too: both hold examples) or "bin"; empty for any other.
std::string data_kind(const std::string& path);

/// What is wrong with a name in data.train or data.validation, with the remedy: a folder, a pattern, or an ending that
/// is not read. Empty for a good name, whether or not the file is there.
std::string why_no_data_name(const std::string& path);

}  // namespace zero
