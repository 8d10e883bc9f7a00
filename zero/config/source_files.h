#pragma once
// Source files: the small files, apart from weights and data, that determine a run's result. A checkpoint records their
// names and the hashes of their contents, so it cannot name a file that the run did not read.
#include <string>
#include <utility>
#include <vector>

#include "models/formats/tokenizer_files.h"
#include "zero/config/config.h"

namespace zero {

struct SourceFile {
  std::string name;  // "base/config.json", "tokenizer/tokenizer.json", "settings/...", "adapter/...", "chat_template"
  std::string path;
};

/// Returns the files that exist in a base model's directory, those of a tokenizer (with settings and chat template) and
/// those in an adapter's directory. Each argument may be empty.
std::vector<SourceFile> source_files(const std::string& base, const TokenizerSource& tokenizer,
                                     const std::string& adapter);

/// The source files of a run.
std::vector<SourceFile> source_files_of(const Config& config);

/// Returns the files' names and the SHA-256 of their contents. Throws InputError if a file cannot be read.
std::vector<std::pair<std::string, std::string>> source_marks(const std::vector<SourceFile>& files);

}  // namespace zero
