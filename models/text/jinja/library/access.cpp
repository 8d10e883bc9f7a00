#include <algorithm>

#include "base/log.h"
#include "base/utf8.h"
#include "models/text/jinja/error.h"
#include "models/text/jinja/library/library.h"
#include "models/text/jinja/library/methods.h"
#include "models/text/jinja/values/characters.h"
#include "models/text/jinja/values/compare.h"
#include "models/text/jinja/values/loop.h"
#include "models/text/jinja/values/show.h"

namespace zero::jinja {
namespace {

Value nothing(Runtime& runtime, const Value& subject, const Value& key) {
  if (key.is(Kind::string))
    return make_undefined(runtime.budget,
                          text("'", subject.is(Kind::none) ? "None" : text(type_name(subject), " object"),
                               "' has no attribute ", repr(key)));
  return make_undefined(runtime.budget, text(subject.is(Kind::none) ? "None" : text(type_name(subject), " object"),
                                             " has no element ", repr(key)));
}

/// An item of a list, tuple, range or string. Returns a missing value if there is none.
Value element(Runtime& runtime, const Value& subject, std::int64_t index) {
  const bool is_text = subject.is(Kind::string);
  const auto length = static_cast<std::int64_t>(is_text ? subject.text().length : subject.items().size());
  if (index < 0) index += length;
  if (index < 0 || index >= length) return {};
  if (!is_text) return subject.items()[static_cast<std::size_t>(index)];
  const std::string_view all = subject.utf8();
  runtime.budget->step(static_cast<std::int64_t>(all.size() / 64));
  const auto place = static_cast<std::size_t>(index);
  const std::size_t begin = subject.text().ascii() ? place : byte_of(all, place);
  return make_string(runtime.budget, std::string(first_character(all.substr(begin))), subject.text().markup);
}

Value element_of(Runtime& runtime, const Value& subject, const Value& key) {
  switch (subject.kind()) {
    case Kind::dict: {
      if (key.is(Kind::list) || key.is(Kind::dict)) return {};
      const Value* found = subject.dict().find(key);
      return found ? *found : Value();
    }
    case Kind::string:
    case Kind::list:
    case Kind::tuple:
    case Kind::range:
      return key.is_whole() ? element(runtime, subject, key.integer()) : Value();
    default:
      return {};
  }
}

std::optional<std::int64_t> bound(const Value& value) {
  if (value.is(Kind::none) || value.is(Kind::missing)) return std::nullopt;
  if (value.is(Kind::undefined) || !value.is_whole())
    fail("slice indices must be integers or None or have an __index__ method");
  return value.integer();
}

/// The indices that begin:end:step selects, adjusted as in Python.
std::vector<std::size_t> places(Runtime& runtime, std::int64_t length, const Value& begin, const Value& end,
                                const Value& step) {
  const std::int64_t stride = bound(step).value_or(1);
  if (stride == 0) fail("slice step cannot be zero");
  const std::int64_t low = stride > 0 ? 0 : -1, high = stride > 0 ? length : length - 1;
  const auto adjust = [&](const Value& value, std::int64_t otherwise) {
    const auto given = bound(value);
    if (!given) return otherwise;
    return std::clamp(*given < 0 ? std::max(*given, -length - 1) + length : *given, low, high);
  };
  const std::int64_t first = adjust(begin, stride > 0 ? low : high), last = adjust(end, stride > 0 ? high : low);
  const std::int64_t distance = stride > 0 ? last - first : first - last;
  runtime.budget->step(std::max<std::int64_t>(distance, 0) / 4);  // the places take memory, too
  std::vector<std::size_t> result;
  for (std::int64_t at = first; stride > 0 ? at < last : at > last;) {
    result.push_back(static_cast<std::size_t>(at));
    if (__builtin_add_overflow(at, stride, &at)) break;
  }
  return result;
}

Value slice_of_text(Runtime& runtime, const Value& subject, const std::vector<std::size_t>& wanted) {
  const std::string& all = subject.utf8();
  runtime.budget->step(static_cast<std::int64_t>(all.size() / 4));
  std::string result;
  if (subject.text().ascii()) {
    for (const std::size_t place : wanted) result += all[place];
  } else if (!wanted.empty()) {
    std::vector<std::size_t> begins;
    for (std::size_t i = 0; i < all.size(); ++i)
      if (!utf8_continues(all[i])) begins.push_back(i);
    for (const std::size_t place : wanted) result += first_character(std::string_view(all).substr(begins[place]));
  }
  return make_string(runtime.budget, std::move(result), subject.text().markup);
}

Value unsafe(Runtime& runtime, const Value& subject, std::string_view name) {
  return make_undefined(runtime.budget,
                        text("access to attribute '", name, "' of '", type_name(subject), "' object is unsafe."), true);
}

}  // namespace

Value own_attribute(Runtime& runtime, const Value& subject, std::string_view name) {
  if (subject.is(Kind::undefined)) fail_undefined(subject);
  if (name.size() > 4 && name.starts_with("__") && name.ends_with("__") && !subject.is(Kind::name_space))
    return unsafe(runtime, subject, name);
  switch (subject.kind()) {
    case Kind::name_space: {
      const Value* found = subject.as<Namespace>().find(name);
      return found ? *found : Value();
    }
    case Kind::loop:
      return loop_attribute(runtime, subject, name);
    case Kind::callable:
      return subject.as<Callable>().attribute(name);
    default:
      break;
  }
  if (subject.is(Kind::tuple) && subject.as<Sequence>().group && (name == "grouper" || name == "list"))
    return subject.items()[name == "list" ? 1 : 0];
  if (changes_its_object(subject, name)) return unsafe(runtime, subject, name);
  return method_of(runtime, subject, name);
}

Value attribute_of(Runtime& runtime, const Value& subject, std::string_view name) {
  Value found = own_attribute(runtime, subject, name);
  if (!found.is(Kind::missing)) return found;
  if (subject.is(Kind::dict))
    if (const Value* item = subject.dict().find(name)) return *item;
  return nothing(runtime, subject, make_string(runtime.budget, std::string(name)));
}

Value item_of(Runtime& runtime, const Value& subject, const Value& key) {
  if (subject.is(Kind::undefined)) fail_undefined(subject);
  Value found = element_of(runtime, subject, key);
  if (found.is(Kind::missing) && key.is(Kind::string)) found = own_attribute(runtime, subject, key.utf8());
  return found.is(Kind::missing) ? nothing(runtime, subject, key) : found;
}

Value slice_of(Runtime& runtime, const Value& subject, const Value& begin, const Value& end, const Value& step) {
  if (subject.is(Kind::undefined)) fail_undefined(subject);
  if (subject.is(Kind::string))
    return slice_of_text(runtime, subject,
                         places(runtime, static_cast<std::int64_t>(subject.text().length), begin, end, step));
  if (!subject.is_sequence()) fail(text("'", type_name(subject), "' object cannot be sliced"));
  if (subject.is(Kind::range)) refuse("slices of a range are not done here: make it a |list first");
  std::vector<Value> items;
  for (const std::size_t place : places(runtime, static_cast<std::int64_t>(subject.items().size()), begin, end, step))
    items.push_back(subject.items()[place]);
  return subject.is(Kind::list) ? make_list(runtime.budget, std::move(items))
                                : make_tuple(runtime.budget, std::move(items));
}

Value call(Runtime& runtime, const Value& callee, const Arguments& arguments) {
  if (callee.is(Kind::undefined)) {
    const auto* absence = callee.try_as<Absence>();
    if (absence && absence->unsafe) throw TemplateError(TemplateError::Kind::failed, absence->message);
    fail_undefined(callee);
  }
  if (callee.is(Kind::loop)) {
    auto& loop = callee.as<Loop>();
    if (!loop.recurse) fail("The loop must have the 'recursive' marker to be called recursively.");
    if (arguments.positional.size() != 1 || !arguments.named.empty()) fail("loop() takes one argument");
    return loop.recurse(arguments.positional[0]);
  }
  if (!callee.is(Kind::callable)) fail(text("'", type_name(callee), "' object is not callable"));
  return callee.as<Callable>().call(runtime, arguments);
}

}  // namespace zero::jinja
