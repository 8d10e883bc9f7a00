#pragma once
// ExampleUse of a file of examples, by the keys of the first one. No LibTorch.
#include <string>

#include "zero/data/examples/encoded_examples.h"

namespace zero {

/// pair for "chosen" with "rejected", judged for "completion" with "label", otherwise single. Files of another kind
/// than .jsonl and .json are single. Throws InputError as read_example_texts() does, or if the first example is not
/// JSON.
ExampleUse use_of_examples(const std::string& file);

}  // namespace zero
