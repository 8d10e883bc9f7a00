#pragma once
// Filters, tests, global functions and methods: those of jinja2 3.1 and Python's str, list and dict that the sandbox
// allows. No LibTorch.
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
  /// An attribute; missing if there is none.
  virtual Value attribute(std::string_view name) { return {}; }
  virtual std::string shown() const { return "<function>"; }
};

using Filter = Value (*)(Runtime& runtime, const Value& subject, const Arguments& arguments);
using Test = bool (*)(Runtime& runtime, const Value& subject, const Arguments& arguments);

/// Finds a function by name, or nullptr. Known names that this engine lacks give a function that throws a refusal.
Filter find_filter(std::string_view name);
Test find_test(std::string_view name);

/// range, dict, namespace, cycler, joiner, raise_exception, strftime_now; missing for other names.
Value global_function(Runtime& runtime, std::string_view name);

/// `subject.name` and `subject[key]`, as the sandbox allows them. Undefined if there is nothing.
Value attribute_of(Runtime& runtime, const Value& subject, std::string_view name);
Value item_of(Runtime& runtime, const Value& subject, const Value& key);

/// Only the attribute, no item, for the filter `attr` and methods. Missing if there is none.
Value own_attribute(Runtime& runtime, const Value& subject, std::string_view name);

/// `subject[begin:end:step]`. A bound that is left out is none.
Value slice_of(Runtime& runtime, const Value& subject, const Value& begin, const Value& end, const Value& step);

Value call(Runtime& runtime, const Value& callee, const Arguments& arguments);

/// Arithmetic: + - * / // % **.
Value binary(Runtime& runtime, std::string_view symbol, const Value& left, const Value& right);
Value negated(const Value& value);

}  // namespace zero::jinja
