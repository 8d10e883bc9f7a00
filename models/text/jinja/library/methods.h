#pragma once
// Methods of Python's str, list, tuple and dict, and of jinja2's loop. Does not include LibTorch.
#include <string_view>

#include "models/text/jinja/library/library.h"

namespace zero::jinja {

/// A method bound to its object. Returns a missing value if no method has this name. Throws TemplateError of kind
/// `refused` for Python methods that this engine lacks.
Value method_of(Runtime& runtime, const Value& subject, std::string_view name);

/// True for list.append, dict.update and the like, which the sandbox forbids.
bool changes_its_object(const Value& subject, std::string_view name);

Value loop_attribute(Runtime& runtime, const Value& loop, std::string_view name);

using Method = Value (*)(Runtime& runtime, const Value& self, const Arguments& arguments);

/// A function that calls a method on its object.
Value bound_method(Runtime& runtime, const Value& self, std::string_view name, Method method);

/// A method of str, or nullptr.
Method find_text_method(std::string_view name);
/// split, rsplit, splitlines, partition, rpartition, join, replace, find, ...
Method find_text_search_method(std::string_view name);

}  // namespace zero::jinja
