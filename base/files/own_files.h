#pragma once
// The files of a folder that somebody else may have made: a model, an adapter, a checkpoint. No LibTorch.
#include <string>
#include <string_view>
#include <vector>

namespace zero {

/// Refuses a file or folder that does not belong to `folder`, in which it lies, by InputError: what is neither a regular
/// file nor a folder, and a link that leads out of the folder. A link to something of the same name is taken (a folder of
/// links), and so is one into the cache of Hugging Face. A link to anything else could put a file of the user's into what
/// is made of the folder. What does not exist is not refused.
void require_own_file(const std::string& folder, const std::string& path);

/// The same of all files in a folder with these endings.
void require_own_files(const std::string& folder, const std::vector<std::string_view>& endings = {
                                                      ".json", ".jinja", ".model", ".safetensors", ".states", ".txt"});

}  // namespace zero
