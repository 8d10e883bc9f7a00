#include <algorithm>
#include <functional>
#include <utility>

#include "base/log.h"
#include "models/text/jinja/error.h"
#include "models/text/jinja/library/arguments.h"
#include "models/text/jinja/library/filters.h"
#include "models/text/jinja/values/compare.h"
#include "models/text/jinja/values/iterate.h"

namespace zero::jinja {
namespace {

/// Yields a function's results until the function returns nothing.
struct Lazy : Generator {
  Lazy(Budget* budget, const Value& source, std::function<std::optional<Value>()> step)
      : Generator(budget, source), step(std::move(step)) {}
  std::optional<Value> next() override {
    if (running) fail("generator already executing");
    if (!step) return std::nullopt;
    const Budget::Level level(*budget);
    running = true;
    auto item = step();
    running = false;
    if (!item) step = nullptr;
    return item;
  }
  std::function<std::optional<Value>()> step;
  bool running = false;
};

/// Makes a lazy value. `step` holds the source and the arguments.
Value lazy(Runtime& runtime, const Value& source, const Arguments& arguments,
           std::function<std::optional<Value>()> step) {
  auto made = std::make_shared<Lazy>(runtime.budget, source, std::move(step));
  for (const Value& value : arguments.positional) nest(*made, value);
  for (const auto& [name, value] : arguments.named) nest(*made, value);
  return Value(Kind::generator, std::move(made));
}

/// An iterator that starts at the first request, like Python's generators.
class LateIterator {
 public:
  explicit LateIterator(Value source) : source_(std::move(source)) {}
  std::optional<Value> next() {
    if (!iterator_) iterator_.emplace(source_);
    return iterator_->next();
  }

 private:
  Value source_;
  std::optional<Iterator> iterator_;
};

Value items(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Given none("items", arguments, {});
  return lazy(runtime, subject, arguments,
              [subject, place = std::size_t{0}, &runtime]() mutable -> std::optional<Value> {
                if (subject.is(Kind::undefined)) return std::nullopt;
                if (!subject.is(Kind::dict)) fail("Can only get item pairs from a mapping.");
                const auto& entries = subject.dict().entries;
                if (place == entries.size()) return std::nullopt;
                const auto& [key, value] = entries[place++];
                return make_tuple(runtime.budget, {key, value});
              });
}

Value reverse(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Given none("reverse", arguments, {});
  if (subject.is(Kind::string)) return slice_of(runtime, subject, Value::none(), Value::none(), Value::integer(-1));
  if (!is_iterable(subject)) fail("argument must be iterable");
  std::vector<Value> reversed = list_of(subject);
  std::reverse(reversed.begin(), reversed.end());
  if (subject.is(Kind::generator)) return make_list(runtime.budget, std::move(reversed));
  const Value list = make_list(runtime.budget, std::move(reversed));
  return lazy(runtime, list, arguments, [iterator = Iterator(list)]() mutable { return iterator.next(); });
}

Value unique(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Given given("unique", arguments, {"case_sensitive", "attribute"});
  const bool sensitive = given.flag(0, false);
  const auto known = std::make_shared<Value>(DictBuilder(runtime.budget).take());
  return lazy(runtime, subject, arguments,
              [&runtime, sensitive, path = given.value(1, Value::none()), known,
               items = LateIterator(subject)]() mutable -> std::optional<Value> {
                while (auto item = items.next()) {
                  Value key = comparable(runtime, follow(runtime, *item, path), sensitive);
                  auto& dict = known->as<Dict>();
                  if (dict.find(key)) continue;
                  dict.charge(2 * sizeof(Value));
                  dict.set(std::move(key), Value::none());
                  return item;
                }
                return std::nullopt;
              });
}

Value batch(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Given given("batch", arguments, {"linecount", "fill_with"}, 1);
  const std::int64_t size = given.whole(0, 1);
  const Value fill = given.value(1, Value::none());
  return lazy(runtime, subject, arguments,
              [&runtime, size, fill, left = std::optional<Value>(), begun = false,
               items = LateIterator(subject)]() mutable -> std::optional<Value> {
                std::vector<Value> line;
                if (!begun) left = items.next();
                begun = true;
                while (left && (line.empty() || static_cast<std::int64_t>(line.size()) != size)) {
                  line.push_back(*left);
                  left = items.next();
                }
                if (line.empty()) return std::nullopt;
                while (!fill.is(Kind::none) && static_cast<std::int64_t>(line.size()) < size) {
                  runtime.budget->step();
                  line.push_back(fill);
                }
                return make_list(runtime.budget, std::move(line));
              });
}

Value slice(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Given given("slice", arguments, {"slices", "fill_with"}, 1);
  const std::int64_t slices = given.whole(0, 1);
  const Value fill = given.value(1, Value::none());
  const Value all = make_list(runtime.budget, list_of(subject));
  return lazy(runtime, all, arguments,
              [&runtime, slices, fill, all, place = std::int64_t{0},
               offset = std::int64_t{0}]() mutable -> std::optional<Value> {
                if (slices == 0) fail("integer division or modulo by zero");
                if (place >= slices) return std::nullopt;
                const auto length = static_cast<std::int64_t>(all.items().size());
                const std::int64_t each = length / slices, extra = length % slices, begin = offset + place * each;
                if (place < extra) ++offset;
                std::vector<Value> part(all.items().begin() + begin, all.items().begin() + offset + (place + 1) * each);
                if (!fill.is(Kind::none) && place >= extra) part.push_back(fill);
                ++place;
                return make_list(runtime.budget, std::move(part));
              });
}

std::function<Value(const Value&)> mapper(Runtime& runtime, const Arguments& arguments) {
  if (arguments.positional.empty()) {
    const Given given("map", arguments, {"attribute", "default"}, 1);
    return [&runtime, path = *given[0], fallback = given.value(1, Value::none())](const Value& item) {
      return follow(runtime, item, path, fallback.is(Kind::none) ? nullptr : &fallback);
    };
  }
  if (!arguments.positional[0].is(Kind::string)) fail("map wants the name of a filter");
  const std::string& name = arguments.positional[0].utf8();
  const Filter filter = find_filter(name);
  if (!filter) fail(text("No filter named '", name, "'."));
  Arguments rest = arguments;
  rest.positional.erase(rest.positional.begin());
  return [&runtime, filter, rest = std::move(rest)](const Value& item) { return filter(runtime, item, rest); };
}

Value map(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  return lazy(runtime, subject, arguments,
              [&runtime, subject, arguments, apply = std::function<Value(const Value&)>(),
               items = LateIterator(subject)]() mutable -> std::optional<Value> {
                if (!truth(subject)) return std::nullopt;
                if (!apply) apply = mapper(runtime, arguments);
                const auto item = items.next();
                return item ? std::optional(apply(*item)) : std::nullopt;
              });
}

std::function<bool(const Value&)> chooser(Runtime& runtime, const Arguments& arguments, bool by_attribute) {
  Arguments rest = arguments;
  Value path = Value::none();
  const auto take = [&rest] {
    Value value = rest.positional.front();
    rest.positional.erase(rest.positional.begin());
    return value;
  };
  if (by_attribute) {
    if (rest.positional.empty()) fail("Missing parameter for attribute name");
    path = take();
  }
  if (rest.positional.empty())
    return [&runtime, path](const Value& item) { return truth(follow(runtime, item, path)); };
  const Value name = take();
  const Test test = name.is(Kind::string) ? find_test(name.utf8()) : nullptr;
  if (!test) fail(text("No test named ", name.is(Kind::string) ? "'" + name.utf8() + "'" : std::string("so"), "."));
  return [&runtime, path, test, rest = std::move(rest)](const Value& item) {
    return test(runtime, follow(runtime, item, path), rest);
  };
}

template <bool ByAttribute, bool Wanted>
Value choose(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  return lazy(runtime, subject, arguments,
              [&runtime, subject, arguments, fits = std::function<bool(const Value&)>(),
               items = LateIterator(subject)]() mutable -> std::optional<Value> {
                if (!truth(subject)) return std::nullopt;
                if (!fits) fits = chooser(runtime, arguments, ByAttribute);
                while (auto item = items.next())
                  if (fits(*item) == Wanted) return item;
                return std::nullopt;
              });
}

constexpr std::pair<std::string_view, Filter> filters[] = {
    {"items", items},
    {"reverse", reverse},
    {"unique", unique},
    {"batch", batch},
    {"slice", slice},
    {"map", map},
    {"select", choose<false, true>},
    {"reject", choose<false, false>},
    {"selectattr", choose<true, true>},
    {"rejectattr", choose<true, false>},
};

}  // namespace

Filter find_lazy_filter(std::string_view name) {
  const auto* found =
      std::find_if(std::begin(filters), std::end(filters), [&](const auto& entry) { return entry.first == name; });
  return found == std::end(filters) ? nullptr : found->second;
}

}  // namespace zero::jinja
