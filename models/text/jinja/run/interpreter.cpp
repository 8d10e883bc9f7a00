#include "models/text/jinja/run/interpreter.h"

#include "base/log.h"
#include "models/text/jinja/error.h"
#include "models/text/jinja/values/compare.h"
#include "models/text/jinja/values/iterate.h"
#include "models/text/jinja/values/show.h"
#include "models/text/jinja/values/text_builder.h"

namespace zero::jinja {
namespace {

/// Adds the line to an error that has none.
template <class Work>
auto at_line(int line, const Work& work) {
  try {
    return work();
  } catch (const TemplateError& error) {
    if (error.line() > 0) throw;
    throw TemplateError(error.kind(), error.message(), line);
  }
}

}  // namespace

Frame::Frame(Budget* budget, std::shared_ptr<Frame> parent, int depth, int count)
    : Object(budget), parent(std::move(parent)), depth(depth), slots(static_cast<std::size_t>(count)) {
  charge(sizeof(Frame) + slots.size() * sizeof(Value));
}

Value& Frame::operator[](Slot slot) {
  Frame* frame = this;
  while (frame->depth > slot.depth) frame = frame->parent.get();
  return frame->slots[static_cast<std::size_t>(slot.index)];
}

Interpreter::Interpreter(const Syntax& syntax, Runtime& runtime, Value variables)
    : syntax_(syntax), runtime_(runtime), budget_(*runtime.budget), variables_(std::move(variables)) {}

std::string Interpreter::run(std::vector<GeneratedSpan>& spans) {
  Output out(budget_);
  out_ = whole_ = &out;
  spans_ = &spans;
  const auto frame = std::make_shared<Frame>(&budget_, nullptr, 0, syntax_.slots);
  keep(frame);
  enter(syntax_.loads, frame);
  execute(syntax_.body, frame);
  return out.take();
}

Value Interpreter::resolve(const std::string& name) {
  if (const Value* given = variables_.dict().find(name)) return *given;
  if (name == "self" || name == "super")
    refuse(text(name, " is for templates with blocks, which chat templates have not"));
  return global_function(runtime_, name);
}

void Interpreter::enter(const std::vector<Load>& loads, const FramePointer& frame) {
  for (const Load& load : loads) switch (load.kind) {
      case Load::Kind::none:
        break;
      case Load::Kind::resolve:
        (*frame)[load.slot] = resolve(load.name);
        break;
      case Load::Kind::alias:
        (*frame)[load.slot] = Value((*frame)[load.outer]);
        break;
      case Load::Kind::missing:
        (*frame)[load.slot] = Value();
        break;
    }
}

void Interpreter::keep(const FramePointer& frame) {
  for (FramePointer each = frame; each && !each->kept; each = each->parent) {
    each->kept = true;
    budget_.keep(each);
  }
}

Value Interpreter::load(const Expression& name, const FramePointer& frame) {
  const Value& value = (*frame)[name.slot];
  return value.is(Kind::missing) ? make_undefined(&budget_, text("'", name.name, "' is undefined")) : value;
}

Value Interpreter::make_dict(const Expression& expression, const FramePointer& frame) {
  DictBuilder dict(&budget_);
  for (std::size_t i = 0; i + 1 < expression.operands.size(); i += 2) {
    Value key = evaluate(*expression.operands[i], frame);
    dict.set(std::move(key), evaluate(*expression.operands[i + 1], frame));
  }
  return dict.take();
}

Value Interpreter::concatenate(const Expression& expression, const FramePointer& frame) {
  std::vector<Value> parts;
  for (const Expression* part : expression.operands) parts.push_back(evaluate(*part, frame));
  TextBuilder text(&budget_);
  for (const Value& part : parts) text += part.is(Kind::string) ? part.utf8() : to_text(part);
  return text.value();
}

bool Interpreter::compare(const Expression& expression, const FramePointer& frame) {
  Value left = evaluate(*expression.operands[0], frame);
  for (std::size_t i = 0; i < expression.comparisons.size(); ++i) {
    Value right = evaluate(*expression.operands[i + 1], frame);
    const std::string& symbol = expression.comparisons[i];
    bool holds = false, unordered = false;
    if (symbol == "==" || symbol == "!=")
      holds = equal(left, right) == (symbol == "==");
    else if (symbol == "in" || symbol == "not in")
      holds = contains(right, left) == (symbol == "in");
    else {
      const int ordered = order(left, right, symbol.c_str(), unordered);
      holds = symbol == "<" ? ordered < 0 : symbol == "<=" ? ordered <= 0 : symbol == ">" ? ordered > 0 : ordered >= 0;
      holds = holds && !unordered;
    }
    if (!holds) return false;
    left = std::move(right);
  }
  return true;
}

Arguments Interpreter::arguments_of(const CallArguments& given, const FramePointer& frame) {
  Arguments arguments;
  for (const Expression* value : given.positional) arguments.positional.push_back(evaluate(*value, frame));
  if (given.star) {
    const std::vector<Value> more = list_of(evaluate(*given.star, frame));
    arguments.positional.insert(arguments.positional.end(), more.begin(), more.end());
  }
  for (const auto& [name, value] : given.named) arguments.named.emplace_back(name, evaluate(*value, frame));
  if (!given.double_star) return arguments;
  const Value more = evaluate(*given.double_star, frame);
  if (!more.is(Kind::dict)) fail(text("argument after ** must be a mapping, not ", type_name(more)));
  for (const auto& [key, value] : more.dict().entries) {
    if (!key.is(Kind::string)) fail("keywords must be strings");
    for (const auto& [name, earlier] : arguments.named)
      if (name == key.utf8()) fail(text("got multiple values for keyword argument '", name, "'"));
    arguments.named.emplace_back(key.utf8(), value);
  }
  return arguments;
}

Value Interpreter::call_expression(const Expression& expression, const FramePointer& frame, const Value* caller) {
  const Value callee = evaluate(*expression.operands[0], frame);
  Arguments arguments = arguments_of(expression.arguments, frame);
  if (caller) arguments.named.emplace_back("caller", *caller);
  return call(runtime_, callee, arguments);
}

Value Interpreter::filter(const Expression& expression, const FramePointer& frame, const Value* held) {
  const Value subject = expression.operands[0] ? expression.operands[0]->kind == Expression::Kind::filter && held
                                                     ? filter(*expression.operands[0], frame, held)
                                                     : evaluate(*expression.operands[0], frame)
                                               : *held;
  const Filter function = find_filter(expression.name);
  if (!function) fail(text("No filter named '", expression.name, "'."));
  return function(runtime_, subject, arguments_of(expression.arguments, frame));
}

bool Interpreter::test(const Expression& expression, const FramePointer& frame) {
  const Value subject = evaluate(*expression.operands[0], frame);
  const Test function = find_test(expression.name);
  if (!function) fail(text("No test named '", expression.name, "'."));
  return function(runtime_, subject, arguments_of(expression.arguments, frame));
}

Value Interpreter::evaluate(const Expression& expression, const FramePointer& frame) {
  using Kind = Expression::Kind;
  budget_.step();
  if (expression.kind == Kind::constant) return expression.value;
  if (expression.kind == Kind::name) return load(expression, frame);
  const Budget::Level level(budget_);
  return at_line(expression.line, [&] { return evaluate_operator(expression, frame); });
}

Value Interpreter::evaluate_operator(const Expression& expression, const FramePointer& frame) {
  using Kind = Expression::Kind;
  const auto operand = [&](std::size_t place) { return evaluate(*expression.operands[place], frame); };
  const auto operands = [&] {
    std::vector<Value> values;
    for (const Expression* each : expression.operands) values.push_back(evaluate(*each, frame));
    return values;
  };
  switch (expression.kind) {
    case Kind::list:
      return make_list(&budget_, operands());
    case Kind::tuple:
      return make_tuple(&budget_, operands());
    case Kind::dict:
      return make_dict(expression, frame);
    case Kind::attribute:
      return attribute_of(runtime_, operand(0), expression.name);
    case Kind::item: {
      const Value subject = operand(0);
      return item_of(runtime_, subject, operand(1));
    }
    case Kind::slice: {
      const auto bound = [&](std::size_t place) { return expression.operands[place] ? operand(place) : Value::none(); };
      const Value subject = operand(0), begin = bound(1), end = bound(2);
      return slice_of(runtime_, subject, begin, end, bound(3));
    }
    case Kind::call:
      return call_expression(expression, frame, nullptr);
    case Kind::filter:
      return filter(expression, frame, nullptr);
    case Kind::test:
      return Value::boolean(test(expression, frame));
    case Kind::negate:
      return negated(operand(0));
    case Kind::plus: {
      const Value value = operand(0);
      if (!value.is_number()) return binary(runtime_, "+", Value::integer(0), value);
      return value.is(zero::jinja::Kind::boolean) ? Value::integer(value.integer()) : value;
    }
    case Kind::logical_not:
      return Value::boolean(!truth(operand(0)));
    case Kind::logical_and: {
      Value left = operand(0);
      return truth(left) ? operand(1) : left;
    }
    case Kind::logical_or: {
      Value left = operand(0);
      return truth(left) ? left : operand(1);
    }
    case Kind::binary: {
      const Value left = operand(0);
      return binary(runtime_, expression.name, left, operand(1));
    }
    case Kind::concatenate:
      return concatenate(expression, frame);
    case Kind::compare:
      return Value::boolean(compare(expression, frame));
    case Kind::conditional:
      if (truth(operand(0))) return operand(1);
      if (expression.operands[2]) return operand(2);
      return make_undefined(&budget_, "the inline if-expression evaluated to false and no else section was defined.");
    default:
      return {};
  }
}

}  // namespace zero::jinja
