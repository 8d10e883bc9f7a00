#pragma once
// Python's ==, <, hash(), truth value and `in`. Does not include LibTorch.
#include <cstdint>
#include <vector>

#include "models/text/jinja/values/value.h"

namespace zero::jinja {

bool truth(const Value& value);
bool equal(const Value& a, const Value& b);

/// Returns a negative number, 0 or a positive number for values that have an order: numbers, strings, lists, tuples.
/// Fails for other values, with `operation` ("<") in the message. For NaN, sets `unordered` and returns 0.
int order(const Value& a, const Value& b, const char* operation, bool& unordered);
bool less(const Value& a, const Value& b);

/// Equal values have equal hashes. Fails for lists, dicts and tuples that contain them.
std::uint64_t hash_of(const Value& value);

/// `item in container`.
bool contains(const Value& container, const Value& item);

/// Sorts items stably by their keys. Both lists have the same length.
void sort_by(std::vector<Value>& items, const std::vector<Value>& keys, bool reverse);

/// Python's name of the value's type: "str", "NoneType".
const char* type_name(const Value& value);

/// Fails with the undefined value's message.
[[noreturn]] void fail_undefined(const Value& value);

}  // namespace zero::jinja
