#pragma once
// Selection: the files of a repository that are fetched.
#include <string>
#include <vector>

#include "zero/fetch/listing.h"
#include "zero/fetch/repository.h"

namespace zero {

/// Globs as those of `hf download`: they match whole paths, "*" matches "/" too, and "FOLDER/" is all below it.
struct Selection {
  std::vector<std::string> include;  // empty: the default files
  std::vector<std::string> exclude;
};

/// The selected files, in the order in which they are fetched: the one that makes a folder a model comes last. A data
/// set has all but .gitattributes by default, and a model the files at its top that zero and transformers open:
///
/// - config.json, generation_config.json, and those of the tokenizer and its chat templates;
/// - the weights, once: model.safetensors, else the index and its shards; and an adapter's;
/// - LICENSE*, NOTICE*, README*.
///
/// Throws InputError if nothing is selected, or if the default files of a model hold no weights; it names other forms
/// of weights that are there.
std::vector<HubFile> select_files(const std::vector<HubFile>& files, const Selection& selection,
                                  const Repository& repository);

}  // namespace zero
