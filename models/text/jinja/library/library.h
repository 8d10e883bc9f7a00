#pragma once
// Filters, tests, global functions and methods: those of jinja2 3.1, and those of Python's str, list and dict that the
// sandbox allows. Does not include LibTorch.
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/text/jinja/values/value.h"

namespace zero::jinja {

struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
};

/// The state of the current rendering that functions need.
struct Runtime {
  Budget* budget;
  std::function<std::string(std::string_view format)> strftime_now;
};

struct Callable : Object {
  using Object::Object;
  virtual Value call(Runtime& runtime, const Arguments& arguments) = 0;
  /// An attribute. Returns a missing value if there is none.
  virtual Value attribute(std::string_view name) { return {}; }
  virtual std::string shown() const { return "<function>"; }
};

using Filter = Value (*)(Runtime& runtime, const Value& subject, const Arguments& arguments);
using Test = bool (*)(Runtime& runtime, const Value& subject, const Arguments& arguments);

/// Finds a function by name. Returns nullptr for an unknown name. For a jinja2 function that this engine lacks, returns
/// a function that throws TemplateError of kind `refused`.
Filter find_filter(std::string_view name);
Test find_test(std::string_view name);

/// range, dict, namespace, cycler, joiner, raise_exception or strftime_now. Returns a missing value for any other name.
Value global_function(Runtime& runtime, std::string_view name);

/// `subject.name` and `subject[key]`, as far as the sandbox allows. Returns an undefined value if there is nothing.
Value attribute_of(Runtime& runtime, const Value& subject, std::string_view name);
Value item_of(Runtime& runtime, const Value& subject, const Value& key);

/// Returns only an attribute and never an item, for the filter `attr` and for methods. Returns a missing value if there
/// is none.
Value own_attribute(Runtime& runtime, const Value& subject, std::string_view name);

/// `subject[begin:end:step]`. An omitted bound is none.
Value slice_of(Runtime& runtime, const Value& subject, const Value& begin, const Value& end, const Value& step);

Value call(Runtime& runtime, const Value& callee, const Arguments& arguments);

/// Arithmetic: + - * / // % **.
Value binary(Runtime& runtime, std::string_view symbol, const Value& left, const Value& right);
Value negated(const Value& value);

}  // namespace zero::jinja
