#pragma once
// Files of examples in chunks for the token cache: whole lines of a .jsonl file, whole objects of a .json list. No
// LibTorch.
#include <functional>
#include <string>

#include "zero/data/examples/conversation.h"
#include "zero/data/text/token_cache.h"

namespace zero {

/// Sets how the file `recipe.source` is cut into chunks of whole examples, and by what its messages count: lines or
/// rows.
void cut_examples(CacheRecipe& recipe);

/// Calls `take` with the examples of a chunk. InputError with file and line or row for what is none.
void for_each_example(const SourceChunk& chunk, const std::string& path,
                      const std::function<void(const Example&)>& take);

}  // namespace zero
