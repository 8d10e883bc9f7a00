#pragma once
// The merges of a BPE model of tokenizer.json, in their order. No LibTorch.
#include <string>
#include <utility>
#include <vector>

namespace zero {

class Component;

using MergePair = std::pair<std::string, std::string>;

/// "merges" of the component, in both forms of the list: "a b" and ["a", "b"]. Throws InputError for another form.
std::vector<MergePair> read_merges(Component& model);

}  // namespace zero
