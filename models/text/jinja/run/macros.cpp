#include "base/log.h"
#include "models/text/jinja/error.h"
#include "models/text/jinja/run/interpreter.h"
#include "models/text/jinja/values/show.h"

namespace zero::jinja {

struct Macro : Callable {
  Macro(Interpreter& interpreter, const Function& function, FramePointer closure)
      : Callable(closure->budget), interpreter(interpreter), function(function), closure(std::move(closure)) {
    charge(sizeof(Macro));
    nesting = 1;
  }
  Value call(Runtime& runtime, const Arguments& arguments) override {
    return interpreter.call_function(function, closure, arguments);
  }
  Value attribute(std::string_view name) override {
    if (name == "name") return make_string(budget, function.name);
    for (const std::string_view other : {"arguments", "catch_kwargs", "catch_varargs", "caller"})
      if (name == other) refuse(text("the attribute ", name, " of a macro is not given here"));
    return {};
  }
  std::string shown() const override { return "<Macro " + repr(function.name) + ">"; }

  Interpreter& interpreter;
  const Function& function;
  FramePointer closure;
};

Value Interpreter::make_macro(const Function& function, const FramePointer& frame) {
  keep(frame);
  return Value(Kind::callable, std::make_shared<Macro>(*this, function, frame));
}

Value Interpreter::call_function(const Function& function, const FramePointer& closure, const Arguments& arguments) {
  const Budget::Level level(budget_);
  const auto frame = std::make_shared<Frame>(&budget_, closure, function.depth, function.slots);
  enter(function.loads, frame);
  bind(function, frame, arguments);
  Output held(budget_);
  Output* const before = out_;
  out_ = &held;
  try {
    execute(function.body, frame);
  } catch (...) {
    out_ = before;
    throw;
  }
  out_ = before;
  return make_string(&budget_, held.take());
}

void Interpreter::bind(const Function& function, const FramePointer& frame, const Arguments& arguments) {
  const std::size_t count = function.parameters.size(), given = std::min(count, arguments.positional.size());
  std::vector<std::pair<std::string, Value>> named = arguments.named;
  const auto take = [&named](std::string_view name) {
    for (auto entry = named.begin(); entry != named.end(); ++entry)
      if (entry->first == name) {
        Value value = std::move(entry->second);
        named.erase(entry);
        return value;
      }
    return Value();
  };
  for (std::size_t i = 0; i < count; ++i)
    (*frame)[function.parameters[i].slot] = i < given ? arguments.positional[i] : take(function.parameters[i].name);
  if (function.takes_caller) {
    const Value caller = take("caller");
    (*frame)[function.caller] =
        caller.is(Kind::missing) || caller.is(Kind::none) ? make_undefined(&budget_, "No caller defined") : caller;
  }
  if (function.takes_named) {
    DictBuilder rest(&budget_);
    for (auto& [name, value] : named) rest.set(make_string(&budget_, name), value);
    (*frame)[function.named] = rest.take();
  } else if (!named.empty()) {
    fail(text("macro '", function.name, "' takes no keyword argument '", named.front().first, "'"));
  }
  if (function.takes_more)
    (*frame)[function.more] = make_tuple(
        &budget_, {arguments.positional.begin() + static_cast<std::ptrdiff_t>(given), arguments.positional.end()});
  else if (arguments.positional.size() > count)
    fail(text("macro '", function.name, "' takes not more than ", count, " argument(s)"));
  for (std::size_t i = 0; i < count; ++i) {
    Value& value = (*frame)[function.parameters[i].slot];
    if (!value.is(Kind::missing)) continue;
    const std::size_t without = count - function.defaults.size();
    const Value made =
        i >= without ? evaluate(*function.defaults[i - without], frame)
                     : make_undefined(&budget_, text("parameter '", function.parameters[i].name, "' was not provided"));
    (*frame)[function.parameters[i].slot] = made;
  }
}

}  // namespace zero::jinja
