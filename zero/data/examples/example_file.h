#pragma once
// Files of examples: .jsonl, one a line, and .json, one list of them. However large, one example is held at a time. No
// LibTorch.
#include <cstdint>
#include <functional>
#include <set>
#include <string>

#include "zero/data/examples/conversation.h"

namespace zero {

/// Calls `take` with the examples of a file (.jsonl or .json) in order until it says false; blank lines are passed
/// over. InputError when the file cannot be read, holds none, or has an example longer than max_bytes.
void read_examples(const std::string& path, const std::function<bool(const Example&)>& take,
                   std::int64_t max_bytes = 16 << 20);

/// Whether the text of an example hangs on a key of its messages.
using ReadsKey = std::function<bool(const std::string& key, const Example& example)>;

/// The keys that are not read in some of the first `count` examples of a file: "id", "messages[].name".
std::set<std::string> ignored_keys(const std::string& path, std::int64_t count, const ReadsKey& reads);

}  // namespace zero
