#pragma once
// Cuts files of examples into chunks for the token cache: whole lines, or whole objects of a list.
// No LibTorch.
#include <functional>
#include <string>
#include <string_view>

#include "zero/data/examples/example_reader.h"
#include "zero/data/text/token_cache.h"

namespace zero {

/// Makes the recipe cut `recipe.source` into chunks of whole examples, and number lines or rows in messages.
void cut_examples(CacheRecipe& recipe, ExampleForm form);

/// Calls `take` with the text and the place of each example of a chunk. Throws InputError that names the file and the
/// line or row if the chunk is malformed.
void for_each_example(const SourceChunk& chunk, const std::string& path, ExampleForm form,
                      const std::function<void(std::string_view json, const std::string& place)>& take);

}  // namespace zero
