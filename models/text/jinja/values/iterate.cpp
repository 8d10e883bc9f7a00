#include "models/text/jinja/values/iterate.h"

#include "base/log.h"
#include "base/utf8.h"
#include "models/text/jinja/error.h"
#include "models/text/jinja/values/compare.h"
#include "models/text/jinja/values/loop.h"

namespace zero::jinja {
namespace {

Value view_item(const DictView& view, std::size_t place) {
  const auto& [key, value] = view.dict.dict().entries[place];
  if (view.of == DictView::Of::keys) return key;
  if (view.of == DictView::Of::values) return value;
  return make_tuple(view.budget, {key, value});
}

}  // namespace

bool is_iterable(const Value& value) {
  switch (value.kind()) {
    case Kind::undefined:
    case Kind::string:
    case Kind::list:
    case Kind::tuple:
    case Kind::range:
    case Kind::dict:
    case Kind::view:
    case Kind::generator:
    case Kind::loop:
      return true;
    default:
      return false;
  }
}

Iterator::Iterator(Value source) : source_(std::move(source)) {
  if (!is_iterable(source_)) fail(text("'", type_name(source_), "' object is not iterable"));
}

std::optional<Value> Iterator::next() {
  if (source_.object() && source_.object()->budget) source_.object()->budget->step();
  switch (source_.kind()) {
    case Kind::string: {
      const std::string& all = source_.utf8();
      if (at_ == all.size()) return std::nullopt;
      const std::string_view character = first_character(std::string_view(all).substr(at_));
      at_ += character.size();
      return make_string(source_.object()->budget, std::string(character), source_.text().markup);
    }
    case Kind::list:
    case Kind::tuple:
    case Kind::range:
      return at_ < source_.items().size() ? std::optional(source_.items()[at_++]) : std::nullopt;
    case Kind::dict:
      return at_ < source_.dict().entries.size() ? std::optional(source_.dict().entries[at_++].first) : std::nullopt;
    case Kind::view: {
      const auto& view = source_.as<DictView>();
      return at_ < view.dict.dict().entries.size() ? std::optional(view_item(view, at_++)) : std::nullopt;
    }
    case Kind::generator:
      return source_.as<Generator>().next();
    case Kind::loop:
      refuse("iterating over the loop itself is not done here");
    default:
      return std::nullopt;
  }
}

std::optional<std::int64_t> length_of(const Value& value) {
  switch (value.kind()) {
    case Kind::undefined:
      return 0;
    case Kind::string:
      return static_cast<std::int64_t>(value.text().length);
    case Kind::list:
    case Kind::tuple:
    case Kind::range:
      return static_cast<std::int64_t>(value.items().size());
    case Kind::dict:
      return static_cast<std::int64_t>(value.dict().entries.size());
    case Kind::view:
      return length_of(value.as<DictView>().dict);
    case Kind::loop:
      return value.as<Loop>().length();
    default:
      return std::nullopt;
  }
}

std::vector<Value> list_of(const Value& value) {
  if (value.is_sequence()) return value.items();
  std::vector<Value> items;
  Iterator iterator(value);
  while (auto next = iterator.next()) items.push_back(*std::move(next));
  return items;
}

}  // namespace zero::jinja
