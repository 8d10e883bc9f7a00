#pragma once
// Checks on folders that somebody else may have made: a model, an adapter, a checkpoint. No LibTorch.
#include <string>
#include <string_view>
#include <vector>

namespace zero {

/// Throws InputError if `path`, inside `folder`, does not belong to it. That is a path that is neither a regular file
/// nor a folder, or a link that leads out of the folder. Two kinds of links are allowed: to a file of the same name (a
/// folder of links), and into the cache of Hugging Face. Other links could pull a user's file into a result. A missing
/// path is not refused.
void require_own_file(const std::string& folder, const std::string& path);

/// Checks all files in a folder with these endings.
void require_own_files(const std::string& folder, const std::vector<std::string_view>& endings = {
                                                      ".json", ".jinja", ".model", ".safetensors", ".states", ".txt"});

}  // namespace zero
