#pragma once
// Selection: the files of a repository that are fetched.
#include <string>
#include <vector>

#include "zero/fetch/listing.h"
#include "zero/fetch/repository.h"

namespace zero {

/// Globs like those of `hf download`. They match whole paths. "*" matches "/" too, and "FOLDER/" selects everything
/// below the folder.
struct Selection {
  std::vector<std::string> include;  // empty: the default files
  std::vector<std::string> exclude;
};

/// Returns the selected files in the order in which they are fetched. The file that makes a folder a model comes last.
/// By default, all files of a data set but .gitattributes are selected. The defaults of a model are the files at its
/// top that zero and transformers open:
///
/// - config.json, generation_config.json, and those of the tokenizer and its chat templates;
/// - the weights, once: model.safetensors, else the index and its shards; and an adapter's;
/// - LICENSE*, NOTICE*, README*.
///
/// Throws InputError if nothing is selected, or if the default files of a model hold no weights. The message then names
/// other forms of weights in the repository.
std::vector<HubFile> select_files(const std::vector<HubFile>& files, const Selection& selection,
                                  const Repository& repository);

}  // namespace zero
