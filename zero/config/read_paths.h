#pragma once
// Compares the inputs of a program with the paths that it removes or overwrites.
#include <optional>
#include <string>
#include <vector>

#include "zero/config/config.h"

namespace zero {

/// An input file or folder, and its name in messages.
struct ReadPath {
  std::string name;  // "model.path"
  std::string path;
};

/// The inputs of a run: configuration, base model, adapter, data, tokenizer and chat template.
std::vector<ReadPath> read_paths_of(const Config& config);

/// Returns the first input at or below `target`, with links resolved. If an input is a folder, the files in it, which
/// may be links, count too. A hard link to `target` also counts. Throws InputError if a path cannot be inspected.
std::optional<ReadPath> first_read_of(const std::vector<ReadPath>& reads, const std::string& target);

/// Throws InputError if a safetensors file would overwrite an input or a file of another kind. `where` starts the
/// message.
void check_tensor_file(const std::string& where, const std::string& path, const std::vector<ReadPath>& reads);

}  // namespace zero
