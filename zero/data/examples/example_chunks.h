#pragma once
// Cuts files of examples into chunks for the token cache: whole lines of a .jsonl file, whole objects of a .json list.
// No LibTorch.
#include <functional>
#include <string>

#include "zero/data/examples/conversation.h"
#include "zero/data/text/token_cache.h"

namespace zero {

/// Sets how `recipe.source` is cut into chunks of whole examples, and whether messages count lines or rows.
void cut_examples(CacheRecipe& recipe);

/// Calls `take` for each example of a chunk. InputError, with file and line or row, if one is invalid.
void for_each_example(const SourceChunk& chunk, const std::string& path,
                      const std::function<void(const Example&)>& take);

}  // namespace zero
