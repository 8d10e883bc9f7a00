#pragma once
// The names of data files: a file's extension decides how it is read.
#include <string>
#include <vector>

namespace zero {

/// "txt", "jsonl" (for .json too: both hold examples) or "bin"; empty for any other.
std::string data_kind(const std::string& path);

/// True if one of the files holds examples, such as conversations.
bool any_holds_examples(const std::vector<std::string>& files);

/// The problem with a name in data.train or data.validation, with the remedy: a folder, a pattern, or an unsupported
/// extension. Empty for a good name, even if no such file exists.
std::string why_no_data_name(const std::string& path);

}  // namespace zero
