#pragma once
// Files of examples: .jsonl with one example per line, or .json with one list. Only one example is in memory at a time,
// however large the file is. No LibTorch.
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "zero/data/examples/conversation.h"

namespace zero {

/// Calls `take` with the text and the place of each example of a file (.jsonl or .json), in order, until `take` returns
/// false; skips blank lines. Throws InputError if the file is unreadable or has no examples, or if an example is longer
/// than max_bytes.
void read_example_texts(const std::string& path,
                        const std::function<bool(std::string_view json, const std::string& place)>& take,
                        std::int64_t max_bytes = 16 << 20);

/// The same with parsed examples.
void read_examples(const std::string& path, const std::function<bool(const Example&)>& take,
                   std::int64_t max_bytes = 16 << 20);

/// Parses the text of one example as the sequences that it has, and adds the keys that are not read to `ignored`.
using ParseSequences = std::function<std::vector<Example>(std::string_view json, const std::string& place,
                                                          std::set<std::string>* ignored)>;

/// The only sequence of an example, by parse_example().
std::vector<Example> one_sequence(std::string_view json, const std::string& place, std::set<std::string>* ignored);

/// True if the text of an example depends on a key of its messages.
using ReadsKey = std::function<bool(const std::string& key, const Example& example)>;

/// Returns ignored keys that occur in the first `count` examples of a file: "id", "messages[].name".
std::set<std::string> ignored_keys(const std::string& path, std::int64_t count, const ReadsKey& reads,
                                   const ParseSequences& parse = one_sequence);

}  // namespace zero
