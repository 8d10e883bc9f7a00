#pragma once
// Files of examples: .jsonl with one a line, or .json with one list. Holds one example at a time, however large the
// file. No LibTorch.
#include <cstdint>
#include <functional>
#include <set>
#include <string>

#include "zero/data/examples/conversation.h"

namespace zero {

/// Calls `take` for each example of a file (.jsonl or .json), in order, until it returns false; skips blank lines.
/// InputError if the file is unreadable or has no examples, or one is longer than max_bytes.
void read_examples(const std::string& path, const std::function<bool(const Example&)>& take,
                   std::int64_t max_bytes = 16 << 20);

/// True if the text of an example depends on a key of its messages.
using ReadsKey = std::function<bool(const std::string& key, const Example& example)>;

/// Keys that some of the first `count` examples of a file have but that are ignored: "id", "messages[].name".
std::set<std::string> ignored_keys(const std::string& path, std::int64_t count, const ReadsKey& reads);

}  // namespace zero
