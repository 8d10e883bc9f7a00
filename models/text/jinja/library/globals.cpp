#include <algorithm>
#include <utility>

#include "base/log.h"
#include "models/text/jinja/error.h"
#include "models/text/jinja/library/arguments.h"
#include "models/text/jinja/library/library.h"
#include "models/text/jinja/library/methods.h"
#include "models/text/jinja/values/compare.h"
#include "models/text/jinja/values/iterate.h"
#include "models/text/jinja/values/show.h"

namespace zero::jinja {
namespace {

constexpr std::int64_t max_range = 100'000;  // of jinja2's sandbox

using Native = Value (*)(Runtime& runtime, const Arguments& arguments);

struct Function : Callable {
  Function(Budget* budget, Native native) : Callable(budget), native(native) {}
  Value call(Runtime& runtime, const Arguments& arguments) override { return native(runtime, arguments); }
  Native native;
};

Value range(Runtime& runtime, const Arguments& arguments) {
  refuse_named("range", arguments);
  const Given given("range", arguments, {"start", "stop", "step"}, 1);
  auto made = std::make_shared<Sequence>(runtime.budget);
  made->start = given[1] ? given.whole(0, 0) : 0;
  made->stop = given[1] ? given.whole(1, 0) : given.whole(0, 0);
  made->step = given.whole(2, 1);
  if (made->step == 0) fail("range() arg 3 must not be zero");
  for (std::int64_t at = made->start; made->step > 0 ? at < made->stop : at > made->stop;) {
    if (static_cast<std::int64_t>(made->items.size()) == max_range)
      fail(text("Range too big. The sandbox blocks ranges larger than MAX_RANGE (", max_range, ")."));
    made->items.push_back(Value::integer(at));
    if (__builtin_add_overflow(at, made->step, &at)) break;
  }
  made->charge(sizeof(Sequence) + made->items.size() * sizeof(Value));
  runtime.budget->step(static_cast<std::int64_t>(made->items.size() / 8));
  return Value(Kind::range, std::move(made));
}

/// dict(mapping or pairs, key=value, ...).
Value dict(Runtime& runtime, const Arguments& arguments) {
  if (arguments.positional.size() > 1)
    fail(text("dict expected at most 1 argument, got ", arguments.positional.size()));
  DictBuilder made(runtime.budget);
  if (!arguments.positional.empty()) {
    const Value& source = arguments.positional[0];
    if (source.is(Kind::dict)) {
      for (const auto& [key, value] : source.dict().entries) made.set(key, value);
    } else {
      for (const Value& pair : list_of(source)) {
        const std::vector<Value> both = list_of(pair);
        if (both.size() != 2)
          fail(text("dictionary update sequence element has length ", both.size(), "; 2 is required"));
        made.set(both[0], both[1]);
      }
    }
  }
  for (const auto& [name, value] : arguments.named) made.set(make_string(runtime.budget, name), value);
  return made.take();
}

Value make_namespace(Runtime& runtime, const Arguments& arguments) {
  const Value attributes = dict(runtime, arguments);
  auto made = std::make_shared<Namespace>(runtime.budget);
  made->charge(sizeof(Namespace));
  for (const auto& [key, value] : attributes.dict().entries) {
    if (!key.is(Kind::string)) fail("a namespace's attributes have names");
    if (key.utf8().starts_with('_'))
      fail(text("Chat templates cannot store underscore-prefixed attributes on a namespace, but got ", repr(key),
                ". Please rename the attribute."));
    made->set(key.utf8(), value);
  }
  runtime.budget->keep(made);
  return Value(Kind::name_space, std::move(made));
}

Value raise_exception(Runtime& runtime, const Arguments& arguments) {
  const Given given("raise_exception", arguments, {"message"}, 1);
  throw TemplateError(TemplateError::Kind::raised, to_text(*given[0]));
}

Value strftime_now(Runtime& runtime, const Arguments& arguments) {
  const Given given("strftime_now", arguments, {"format"}, 1);
  return make_string(runtime.budget, runtime.strftime_now(given.string(0, "")));
}

Value lipsum(Runtime& runtime, const Arguments& arguments) {
  refuse("lipsum makes random text, which no conversation needs");
}

/// The state that a cycler and its methods share.
struct Turns : Object {
  Turns(Budget* budget, std::vector<Value> given) : Object(budget), items(std::move(given)) {
    charge(sizeof(Turns) + items.size() * sizeof(Value));
    for (const Value& item : items) nest(*this, item);
  }
  std::vector<Value> items;
  std::size_t place = 0;
};

struct CyclerMethod : Callable {
  CyclerMethod(std::shared_ptr<Turns> turns, bool resets)
      : Callable(turns->budget), turns(std::move(turns)), resets(resets) {
    nesting = this->turns->nesting + 1;
  }
  Value call(Runtime& runtime, const Arguments& arguments) override {
    const Given none("the cycler", arguments, {});
    const std::size_t now = turns->place;
    turns->place = resets ? 0 : (now + 1) % turns->items.size();
    return resets ? Value::none() : turns->items[now];
  }

  std::shared_ptr<Turns> turns;
  bool resets;
};

struct Cycler : Callable {
  explicit Cycler(std::shared_ptr<Turns> turns) : Callable(turns->budget), turns(std::move(turns)) {
    nesting = this->turns->nesting + 1;
  }
  Value call(Runtime& runtime, const Arguments& arguments) override { fail("'Cycler' object is not callable"); }
  Value attribute(std::string_view name) override {
    if (name == "current") return turns->items[turns->place];
    if (name == "next" || name == "reset")
      return Value(Kind::callable, std::make_shared<CyclerMethod>(turns, name == "reset"));
    return {};
  }
  std::shared_ptr<Turns> turns;
};

Value cycler(Runtime& runtime, const Arguments& arguments) {
  refuse_named("cycler", arguments);
  if (arguments.positional.empty()) fail("at least one item has to be provided");
  return Value(Kind::callable, std::make_shared<Cycler>(std::make_shared<Turns>(runtime.budget, arguments.positional)));
}

struct Joiner : Callable {
  Joiner(Budget* budget, Value mark) : Callable(budget), mark(std::move(mark)) { nest(*this, this->mark); }
  Value call(Runtime& runtime, const Arguments& arguments) override {
    const Given none("the joiner", arguments, {});
    if (used) return mark;
    used = true;
    return make_string(runtime.budget, "");
  }
  Value mark;
  bool used = false;
};

Value joiner(Runtime& runtime, const Arguments& arguments) {
  const Given given("joiner", arguments, {"sep"});
  return Value(Kind::callable,
               std::make_shared<Joiner>(runtime.budget, given.value(0, make_string(runtime.budget, ", "))));
}

constexpr std::pair<std::string_view, Native> functions[] = {
    {"range", range},
    {"dict", dict},
    {"namespace", make_namespace},
    {"raise_exception", raise_exception},
    {"strftime_now", strftime_now},
    {"lipsum", lipsum},
    {"cycler", cycler},
    {"joiner", joiner},
};

}  // namespace

Value global_function(Runtime& runtime, std::string_view name) {
  const auto* found =
      std::find_if(std::begin(functions), std::end(functions), [&](const auto& entry) { return entry.first == name; });
  if (found == std::end(functions)) return {};
  return Value(Kind::callable, std::make_shared<Function>(runtime.budget, found->second));
}

}  // namespace zero::jinja
