#pragma once
// Reads the merges of a tokenizer.json's BPE model, in order. Does not include LibTorch.
#include <string>
#include <utility>
#include <vector>

namespace zero {

class Component;

using MergePair = std::pair<std::string, std::string>;

/// Reads the component's "merges", whose entries are either "a b" or ["a", "b"]. Throws InputError for any other form.
std::vector<MergePair> read_merges(Component& model);

}  // namespace zero
