#pragma once
// What a program reads, against what it removes or writes over.
#include <optional>
#include <string>
#include <vector>

#include "zero/config/config.h"

namespace zero {

/// A file or folder that is read, and what messages call it.
struct ReadPath {
  std::string name;  // "model.path"
  std::string path;
};

/// Of a run: its configuration, base model, adapter, data, tokenizer and chat template.
std::vector<ReadPath> read_paths_of(const Config& config);

/// The first that lies at `target` or below it, where links lead to; of a folder also the files in it, which may be
/// links themselves. A file that is another name of `target` (a hard link) counts too. InputError when a path cannot be
/// looked at.
std::optional<ReadPath> first_read_of(const std::vector<ReadPath>& reads, const std::string& target);

/// Refuses to write a safetensors file over what is read, and over a file that is none. `where` begins the message.
void check_tensor_file(const std::string& where, const std::string& path, const std::vector<ReadPath>& reads);

}  // namespace zero
