#pragma once
// Source files: the small files beside weights and data of which a run's result is made. A checkpoint names them, and
// records their contents: whoever made it can so name no file whose content they did not know.
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

/// Those that are there of a base model's directory, a tokenizer with its settings and chat template, and the directory
/// of an adapter. Each may be empty.
std::vector<SourceFile> source_files(const std::string& base, const TokenizerSource& tokenizer,
                                     const std::string& adapter);

/// Those of a run.
std::vector<SourceFile> source_files_of(const Config& config);

/// Their names with SHA-256 of their contents. InputError for one that cannot be read.
std::vector<std::pair<std::string, std::string>> source_marks(const std::vector<SourceFile>& files);

}  // namespace zero
