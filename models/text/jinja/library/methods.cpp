#include "models/text/jinja/library/methods.h"

#include <algorithm>
#include <array>

#include "base/log.h"
#include "models/text/jinja/error.h"
#include "models/text/jinja/library/arguments.h"
#include "models/text/jinja/values/compare.h"
#include "models/text/jinja/values/iterate.h"
#include "models/text/jinja/values/loop.h"

namespace zero::jinja {
namespace {

struct BoundMethod : Callable {
  BoundMethod(Budget* budget, Value self, std::string name, Method method)
      : Callable(budget), self(std::move(self)), name(std::move(name)), method(method) {
    charge(sizeof(BoundMethod));
    nest(*this, this->self);
  }
  Value call(Runtime& runtime, const Arguments& arguments) override { return method(runtime, self, arguments); }

  Value self;
  std::string name;
  Method method;
};

Value view(Runtime& runtime, const Value& self, const Arguments& arguments, const char* name, DictView::Of of) {
  const Given none(name, arguments, {});
  return Value(Kind::view, std::make_shared<DictView>(runtime.budget, self, of));
}

Value dict_keys(Runtime& runtime, const Value& self, const Arguments& arguments) {
  return view(runtime, self, arguments, "keys", DictView::Of::keys);
}
Value dict_values(Runtime& runtime, const Value& self, const Arguments& arguments) {
  return view(runtime, self, arguments, "values", DictView::Of::values);
}
Value dict_items(Runtime& runtime, const Value& self, const Arguments& arguments) {
  return view(runtime, self, arguments, "items", DictView::Of::items);
}

Value dict_get(Runtime& runtime, const Value& self, const Arguments& arguments) {
  refuse_named("get", arguments);
  const Given given("get", arguments, {"key", "default"}, 1);
  const Value* found = self.dict().find(*given[0]);
  return found ? *found : given.value(1, Value::none());
}

Value dict_copy(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const Given none("copy", arguments, {});
  return self;  // values that never change are their own copies
}

Value sequence_copy(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const Given none("copy", arguments, {});
  return self;
}

Value sequence_count(Runtime& runtime, const Value& self, const Arguments& arguments) {
  refuse_named("count", arguments);
  const Given given("count", arguments, {"value"}, 1);
  return Value::integer(std::count_if(self.items().begin(), self.items().end(),
                                      [&](const Value& item) { return equal(item, *given[0]); }));
}

Value sequence_index(Runtime& runtime, const Value& self, const Arguments& arguments) {
  refuse_named("index", arguments);
  const Given given("index", arguments, {"value", "start", "stop"}, 1);
  const auto length = static_cast<std::int64_t>(self.items().size());
  const auto place = [&](std::int64_t at) { return std::clamp<std::int64_t>(at < 0 ? at + length : at, 0, length); };
  for (std::int64_t at = place(given.whole(1, 0)); at < place(given.whole(2, length)); ++at)
    if (equal(self.items()[static_cast<std::size_t>(at)], *given[0])) return Value::integer(at);
  fail("the value is not in the list");
}

Value loop_cycle(Runtime& runtime, const Value& self, const Arguments& arguments) {
  refuse_named("cycle", arguments);
  if (arguments.positional.empty()) fail("no items for cycling given");
  return arguments.positional[static_cast<std::size_t>(self.as<Loop>().index0) % arguments.positional.size()];
}

Value loop_changed(Runtime& runtime, const Value& self, const Arguments& arguments) {
  refuse_named("changed", arguments);
  runtime.budget->keep(self.object());  // it now holds values that it was not made of
  return Value::boolean(self.as<Loop>().changed(arguments.positional));
}

Value real_is_integer(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const Given none("is_integer", arguments, {});
  const double value = self.real();
  return Value::boolean(value - value == 0 && value == static_cast<double>(static_cast<long long>(value)));
}

template <std::size_t Count>
bool is_one_of(std::string_view name, const std::array<std::string_view, Count>& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Method find_container_method(const Value& subject, std::string_view name) {
  if (subject.is(Kind::dict)) {
    if (name == "items") return dict_items;
    if (name == "keys") return dict_keys;
    if (name == "values") return dict_values;
    if (name == "get") return dict_get;
    if (name == "copy") return dict_copy;
  }
  if (subject.is_sequence()) {
    if (name == "copy" && subject.is(Kind::list)) return sequence_copy;
    if (name == "count") return sequence_count;
    if (name == "index") return sequence_index;
  }
  if (subject.is(Kind::real) && name == "is_integer") return real_is_integer;
  return nullptr;
}

/// Methods and attributes of Python that this engine lacks.
bool is_left_out(const Value& subject, std::string_view name) {
  static constexpr std::array<std::string_view, 4> of_strings{"encode", "maketrans", "translate", "format_map"};
  static constexpr std::array<std::string_view, 14> of_numbers{
      "real",     "imag",       "numerator",        "denominator", "conjugate", "bit_length", "bit_count",
      "to_bytes", "from_bytes", "as_integer_ratio", "hex",         "fromhex",   "is_integer", "bool"};
  if (subject.is(Kind::string)) return is_one_of(name, of_strings);
  if (subject.is(Kind::dict)) return name == "fromkeys";
  return subject.is_number() && is_one_of(name, of_numbers);
}

}  // namespace

Value bound_method(Runtime& runtime, const Value& self, std::string_view name, Method method) {
  return Value(Kind::callable, std::make_shared<BoundMethod>(runtime.budget, self, std::string(name), method));
}

Value method_of(Runtime& runtime, const Value& subject, std::string_view name) {
  Method method = find_container_method(subject, name);
  if (!method && subject.is(Kind::string)) method = find_text_method(name);
  if (!method && subject.is(Kind::string)) method = find_text_search_method(name);
  if (method) return bound_method(runtime, subject, name, method);
  if (is_left_out(subject, name)) refuse(text("the method ", name, " of ", type_name(subject), " is not done here"));
  return {};
}

bool changes_its_object(const Value& subject, std::string_view name) {
  static constexpr std::array<std::string_view, 8> of_lists{"append", "clear",  "extend",  "insert",
                                                            "pop",    "remove", "reverse", "sort"};
  static constexpr std::array<std::string_view, 5> of_dicts{"clear", "pop", "popitem", "setdefault", "update"};
  if (subject.is(Kind::list)) return is_one_of(name, of_lists);
  return subject.is(Kind::dict) && is_one_of(name, of_dicts);
}

Value loop_attribute(Runtime& runtime, const Value& loop, std::string_view name) {
  if (name == "cycle") return bound_method(runtime, loop, name, loop_cycle);
  if (name == "changed") return bound_method(runtime, loop, name, loop_changed);
  return loop.as<Loop>().attribute(name);
}

}  // namespace zero::jinja
