#pragma once
// Formats of data files that zero does not read, and the commands that convert them.
#include <string>

namespace zero {

/// Returns how to convert a file with a name such as a.parquet, a.csv or a.jsonl.gz: "convert it: scripts/to_jsonl
/// a.parquet --to a.jsonl". Empty for other names. Does not read the file.
std::string conversion_by_name(const std::string& path);

/// The same by the first bytes of a file, whatever its name, with the name of the format: "is a Parquet file; convert
/// it: ...". Empty for files of other formats. Throws InputError if the file is unreadable.
std::string conversion_by_content(const std::string& path);

}  // namespace zero
