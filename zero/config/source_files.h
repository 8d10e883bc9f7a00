#pragma once
// Source files: the small files, apart from weights and data, that determine a run's result. A checkpoint records their
// names and contents, so it cannot name a file that its maker has not read.
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

/// The files that exist in a base model's directory, of a tokenizer (with settings and chat template) and in an
/// adapter's directory. Each of these may be empty.
std::vector<SourceFile> source_files(const std::string& base, const TokenizerSource& tokenizer,
                                     const std::string& adapter);

/// The source files of a run.
std::vector<SourceFile> source_files_of(const Config& config);

/// Their names and the SHA-256 of their contents. InputError if one cannot be read.
std::vector<std::pair<std::string, std::string>> source_marks(const std::vector<SourceFile>& files);

}  // namespace zero
