#include "models/text/jinja/values/compare.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>

#include "base/log.h"
#include "models/text/jinja/error.h"
#include "models/text/jinja/values/iterate.h"

namespace zero::jinja {
namespace {

bool equal_numbers(const Value& a, const Value& b) {
  if (a.is_whole() && b.is_whole()) return a.integer() == b.integer();
  if (a.is(Kind::real) && b.is(Kind::real)) return a.real() == b.real();
  const std::int64_t whole = a.is_whole() ? a.integer() : b.integer();
  const double real = a.is(Kind::real) ? a.real() : b.real();
  return real == std::floor(real) && std::abs(real) < 9.3e18 && static_cast<double>(whole) == real &&
         (std::abs(real) >= 9.2e18 || static_cast<std::int64_t>(real) == whole);
}

bool equal_items(const std::vector<Value>& a, const std::vector<Value>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), equal);
}

bool equal_dicts(const Dict& a, const Dict& b) {
  return a.entries.size() == b.entries.size() &&
         std::all_of(a.entries.begin(), a.entries.end(), [&](const auto& entry) {
           const Value* other = b.find(entry.first);
           return other && equal(entry.second, *other);
         });
}

void charge_comparison(const Value& value) {
  if (value.object() && value.object()->budget) value.object()->budget->step();
}

}  // namespace

bool truth(const Value& value) {
  switch (value.kind()) {
    case Kind::undefined:
    case Kind::none:
      return false;
    case Kind::boolean:
    case Kind::integer:
      return value.integer() != 0;
    case Kind::real:
      return value.real() != 0;
    case Kind::string:
      return !value.utf8().empty();
    case Kind::list:
    case Kind::tuple:
    case Kind::range:
      return !value.items().empty();
    case Kind::dict:
      return !value.dict().entries.empty();
    case Kind::view:
      return truth(value.as<DictView>().dict);
    case Kind::loop:
      return length_of(value).value_or(1) != 0;
    default:
      return true;
  }
}

bool equal(const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) return equal_numbers(a, b);
  if (a.kind() != b.kind()) return false;
  charge_comparison(a);
  switch (a.kind()) {
    case Kind::string:
      return a.utf8() == b.utf8();
    case Kind::list:
    case Kind::tuple:
    case Kind::range:
      return equal_items(a.items(), b.items());
    case Kind::dict:
      return equal_dicts(a.dict(), b.dict());
    case Kind::undefined:
    case Kind::none:
      return true;
    default:
      return a.object() == b.object();
  }
}

int order(const Value& a, const Value& b, const char* operation, bool& unordered) {
  unordered = false;
  if (a.is(Kind::undefined)) fail_undefined(a);
  if (b.is(Kind::undefined)) fail_undefined(b);
  charge_comparison(a);
  if (a.is_whole() && b.is_whole()) return a.integer() < b.integer() ? -1 : a.integer() > b.integer();
  if (a.is_number() && b.is_number()) {
    const double left = a.real(), right = b.real();
    unordered = std::isnan(left) || std::isnan(right);
    return left < right ? -1 : left > right;
  }
  if (a.is(Kind::string) && b.is(Kind::string)) return a.utf8().compare(b.utf8());  // bytes order as code points do
  if (a.kind() == b.kind() && (a.is(Kind::list) || a.is(Kind::tuple))) {
    const auto &left = a.items(), &right = b.items();
    for (std::size_t i = 0; i < std::min(left.size(), right.size()); ++i)
      if (!equal(left[i], right[i])) return order(left[i], right[i], operation, unordered);
    return left.size() < right.size() ? -1 : left.size() > right.size();
  }
  fail(text("'", operation, "' not supported between instances of '", type_name(a), "' and '", type_name(b), "'"));
}

bool less(const Value& a, const Value& b) {
  bool unordered = false;
  return order(a, b, "<", unordered) < 0 && !unordered;
}

std::uint64_t hash_of(const Value& value) {
  switch (value.kind()) {
    case Kind::boolean:
    case Kind::integer:
      return std::hash<std::int64_t>()(value.integer()) * 0x9E3779B97F4A7C15U >> 7;
    case Kind::real: {
      const double real = value.real();
      if (std::abs(real) < 9e18 && real == std::floor(real))
        return hash_of(Value::integer(static_cast<std::int64_t>(real)));
      return std::hash<double>()(real);
    }
    case Kind::string:
      return std::hash<std::string>()(value.utf8());
    case Kind::tuple: {
      std::uint64_t hash = 1469598103U;
      for (const Value& item : value.items()) hash = (hash ^ hash_of(item)) * 1099511628211U;
      return hash;
    }
    case Kind::list:
    case Kind::dict:
      fail(text("unhashable type: '", type_name(value), "'"));
    case Kind::range:
      refuse("a range cannot be a key here");
    default:
      return std::hash<const void*>()(value.object().get()) + static_cast<std::uint64_t>(value.kind());
  }
}

bool contains(const Value& container, const Value& item) {
  switch (container.kind()) {
    case Kind::undefined:
      return false;
    case Kind::string:
      if (item.is(Kind::undefined) || !item.is(Kind::string))
        fail(text("'in <string>' requires string as left operand, not ", type_name(item)));
      if (container.object()->budget)
        container.object()->budget->step(static_cast<std::int64_t>(container.utf8().size() / 64));
      return container.utf8().find(item.utf8()) != std::string::npos;
    case Kind::dict:
      return container.dict().find(item) != nullptr;
    case Kind::none:
    case Kind::boolean:
    case Kind::integer:
    case Kind::real:
    case Kind::callable:
    case Kind::name_space:
      fail(text("argument of type '", type_name(container), "' is not iterable"));
    default:
      break;
  }
  Iterator iterator(container);
  while (const auto next = iterator.next())
    if (equal(*next, item)) return true;
  return false;
}

void sort_by(std::vector<Value>& items, const std::vector<Value>& keys, bool reverse) {
  std::vector<std::size_t> places(items.size());
  std::iota(places.begin(), places.end(), std::size_t{0});
  // the order must be strict even for NaN or a comparison that fails: std::stable_sort relies on that
  if (reverse) std::reverse(places.begin(), places.end());
  std::stable_sort(places.begin(), places.end(), [&](std::size_t a, std::size_t b) { return less(keys[a], keys[b]); });
  if (reverse) std::reverse(places.begin(), places.end());
  std::vector<Value> sorted;
  sorted.reserve(items.size());
  for (const std::size_t place : places) sorted.push_back(items[place]);
  items = std::move(sorted);
}

const char* type_name(const Value& value) {
  switch (value.kind()) {
    case Kind::undefined:
      return "Undefined";
    case Kind::none:
      return "NoneType";
    case Kind::boolean:
      return "bool";
    case Kind::integer:
      return "int";
    case Kind::real:
      return "float";
    case Kind::string:
      return value.text().markup ? "Markup" : "str";
    case Kind::list:
      return "list";
    case Kind::tuple:
      return "tuple";
    case Kind::range:
      return "range";
    case Kind::dict:
      return "dict";
    case Kind::view:
      return value.as<DictView>().of == DictView::Of::keys     ? "dict_keys"
             : value.as<DictView>().of == DictView::Of::values ? "dict_values"
                                                               : "dict_items";
    case Kind::generator:
      return "generator";
    case Kind::name_space:
      return "Namespace";
    case Kind::loop:
      return "LoopContext";
    default:
      return "function";
  }
}

void fail_undefined(const Value& value) {
  const auto* absence = value.try_as<Absence>();
  fail(absence ? absence->message : "a value is undefined");
}

}  // namespace zero::jinja
