#pragma once
// Cuts files of examples into chunks for the token cache: whole lines of a .jsonl file, whole objects of a .json list.
// No LibTorch.
#include <functional>
#include <string>

#include "zero/data/examples/conversation.h"
#include "zero/data/text/token_cache.h"

namespace zero {

/// Makes the recipe cut `recipe.source` into chunks of whole examples, and number lines or rows in messages.
void cut_examples(CacheRecipe& recipe);

/// Calls `take` for each example of a chunk. Throws InputError that names the file and the line or row if an example is
/// invalid.
void for_each_example(const SourceChunk& chunk, const std::string& path,
                      const std::function<void(const Example&)>& take);

}  // namespace zero
