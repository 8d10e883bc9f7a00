#pragma once
// Checks folders that may come from somebody else: a model, an adapter, a checkpoint. Does not include LibTorch.
#include <string>
#include <string_view>
#include <vector>

namespace zero {

/// Throws InputError if `path`, inside `folder`, is neither a regular file nor a folder, or is a link that leads out of
/// `folder`. Two kinds of such links are allowed: to a file of the same name (a folder of links), and into Hugging
/// Face's cache. Any other link could copy one of the user's files into a result. A missing path passes.
void require_own_file(const std::string& folder, const std::string& path);

/// Checks all files in a folder with these endings.
void require_own_files(const std::string& folder, const std::vector<std::string_view>& endings = {
                                                      ".json", ".jinja", ".model", ".safetensors", ".states", ".txt"});

}  // namespace zero
