#pragma once
// The filters, in three tables. Does not include LibTorch.
#include <string_view>

#include "models/text/jinja/library/library.h"

namespace zero::jinja {

Filter find_text_filter(std::string_view name);      // trim, upper, tojson, indent, ...
Filter find_sequence_filter(std::string_view name);  // join, sort, groupby, ...
Filter find_lazy_filter(std::string_view name);      // map, select, ...: filters that return a generator

/// The value at a dotted path ("function.name", "0.role"). `otherwise`, if given, replaces an undefined value.
Value follow(Runtime& runtime, const Value& item, const Value& path, const Value* otherwise = nullptr);

/// The key by which filters sort and compare: strings are in lower case unless `case_sensitive`.
Value comparable(Runtime& runtime, Value value, bool case_sensitive);

}  // namespace zero::jinja
