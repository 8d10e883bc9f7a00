#pragma once
// The names of data files: a file's extension determines how it is read.
#include <string>
#include <vector>

namespace zero {

/// Returns "txt", "jsonl" (for .json too, since both hold examples) or "bin"; empty for any other extension.
std::string data_kind(const std::string& path);

/// True if one of the files holds examples, such as conversations.
bool any_holds_examples(const std::vector<std::string>& files);

/// Returns the problem with a name in data.train or data.validation, and a remedy. Problems are a folder, a pattern,
/// and an unsupported extension. Empty for a valid name, even if no such file exists.
std::string why_no_data_name(const std::string& path);

/// Returns the problem with the content of such a file, and a remedy: it has a format that zero does not read, whatever
/// its name says. Empty for others, and for ids (.bin), which may look like anything. Throws InputError if the file
/// is unreadable.
std::string why_no_data_content(const std::string& path);

}  // namespace zero
