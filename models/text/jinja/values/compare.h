#pragma once
// Python's ==, <, hash, truth and containment. No LibTorch.
#include <cstdint>
#include <vector>

#include "models/text/jinja/values/value.h"

namespace zero::jinja {

bool truth(const Value& value);
bool equal(const Value& a, const Value& b);

/// Negative, 0 or positive for values that have an order: numbers, strings, lists, tuples. Fails with `operation` ("<")
/// in the message for others. NaN is unordered: it sets `unordered` and returns 0.
int order(const Value& a, const Value& b, const char* operation, bool& unordered);
bool less(const Value& a, const Value& b);

/// Equal values have equal hashes. Fails for lists, dicts and their containers.
std::uint64_t hash_of(const Value& value);

/// `item in container`.
bool contains(const Value& container, const Value& item);

/// Sorts stably by keys. Both have one length.
void sort_by(std::vector<Value>& items, const std::vector<Value>& keys, bool reverse);

/// Python's name of the value's type: "str", "NoneType".
const char* type_name(const Value& value);

/// Fails with the message of the undefined value.
[[noreturn]] void fail_undefined(const Value& value);

}  // namespace zero::jinja
