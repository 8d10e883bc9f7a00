#include "base/log.h"
#include "models/text/jinja/error.h"
#include "models/text/jinja/run/interpreter.h"
#include "models/text/jinja/values/compare.h"
#include "models/text/jinja/values/iterate.h"
#include "models/text/jinja/values/loop.h"
#include "models/text/jinja/values/show.h"

namespace zero::jinja {
namespace {

/// Lets statements write elsewhere while it lives.
class Redirect {
 public:
  Redirect(Output*& out, Output& to) : out_(out), before_(out) { out_ = &to; }
  Redirect(const Redirect&) = delete;
  ~Redirect() { out_ = before_; }

 private:
  Output*& out_;
  Output* before_;
};

}  // namespace

Interpreter::Flow Interpreter::execute(const Block& block, const FramePointer& frame) {
  const Budget::Level level(budget_);
  for (const Statement* statement : block) {
    budget_.step();
    try {
      if (const Flow flow = execute(*statement, frame); flow != Flow::on) return flow;
    } catch (const TemplateError& error) {
      if (error.line() > 0) throw;
      throw TemplateError(error.kind(), error.message(), statement->line);
    }
  }
  return Flow::on;
}

void Interpreter::write(const Value& value) {
  if (value.is(Kind::string))
    out_->write(value.utf8());
  else if (!value.is(Kind::undefined))
    out_->write(to_text(value));
}

Interpreter::Flow Interpreter::execute(const Statement& statement, const FramePointer& frame) {
  using Kind = Statement::Kind;
  switch (statement.kind) {
    case Kind::text:
      out_->write(statement.text);
      return Flow::on;
    case Kind::print:
      write(evaluate(*statement.expression, frame));
      return Flow::on;
    case Kind::condition:
      return execute_condition(statement, frame);
    case Kind::loop:
      return execute_loop(statement, frame);
    case Kind::assign:
      assign(statement.target, evaluate(*statement.expression, frame), frame);
      return Flow::on;
    case Kind::assign_block:
      return assign_block(statement, frame);
    case Kind::macro:
      assign(statement.target, make_macro(statement.function, frame), frame);
      return Flow::on;
    case Kind::call: {
      const Value caller = make_macro(statement.function, frame);
      write(call_expression(*statement.expression, frame, &caller));
      return Flow::on;
    }
    case Kind::generation: {
      const Value written = call_function(statement.function, frame, {});
      const std::size_t begin = whole_->characters();
      spans_->push_back({begin, begin + written.text().length, whole_->bytes(), written});
      write(written);
      return Flow::on;
    }
    case Kind::break_loop:
      return Flow::break_loop;
    case Kind::continue_loop:
      return Flow::continue_loop;
    default:
      return execute_inner(statement, frame);
  }
}

Interpreter::Flow Interpreter::execute_condition(const Statement& statement, const FramePointer& frame) {
  for (const auto& [test, body] : statement.branches)
    if (truth(evaluate(*test, frame))) return execute(body, frame);
  return execute(statement.other, frame);
}

/// filter and with blocks, autoescape.
Interpreter::Flow Interpreter::execute_inner(const Statement& statement, const FramePointer& frame) {
  std::vector<Value> values;
  enter(statement.loads, frame);
  for (std::size_t i = 0; i < statement.targets.size(); ++i)
    assign(statement.targets[i], evaluate(*statement.values[i], frame), frame);
  if (statement.kind != Statement::Kind::filter) return execute(statement.body, frame);
  Output held(budget_);
  Flow flow = Flow::on;
  {
    const Redirect redirect(out_, held);
    flow = execute(statement.body, frame);
  }
  if (flow != Flow::on) return flow;  // the block's output is dropped with it
  const Value text = make_string(&budget_, held.take());
  write(filter(*statement.expression, frame, &text));
  return Flow::on;
}

Interpreter::Flow Interpreter::assign_block(const Statement& statement, const FramePointer& frame) {
  enter(statement.loads, frame);
  Output held(budget_);
  {
    const Redirect redirect(out_, held);
    if (const Flow flow = execute(statement.body, frame); flow != Flow::on) return flow;
  }
  Value value = make_string(&budget_, held.take());
  if (statement.expression) value = filter(*statement.expression, frame, &value);
  assign(statement.target, value, frame);
  return Flow::on;
}

void Interpreter::assign(const Target& target, const Value& value, const FramePointer& frame, Slot Target::*slot) {
  if (target.kind == Target::Kind::name) {
    (*frame)[target.*slot] = value;
    return;
  }
  if (target.kind == Target::Kind::attribute) {
    const Value& space = (*frame)[target.*slot];
    if (!space.is(Kind::name_space)) fail("cannot assign attribute on non-namespace object");
    if (target.attribute.starts_with('_'))
      fail(text("Chat templates cannot store underscore-prefixed attributes on a namespace, but got ",
                repr(target.attribute), ". Please rename the attribute."));
    space.as<Namespace>().set(target.attribute, value);
    return;
  }
  const std::vector<Value> items = list_of(value);
  if (items.size() != target.parts.size())
    fail(items.size() < target.parts.size()
             ? text("not enough values to unpack (expected ", target.parts.size(), ", got ", items.size(), ")")
             : text("too many values to unpack (expected ", target.parts.size(), ")"));
  for (std::size_t i = 0; i < items.size(); ++i) assign(target.parts[i], items[i], frame, slot);
}

Interpreter::Flow Interpreter::execute_loop(const Statement& statement, const FramePointer& frame) {
  const Value source = evaluate(*statement.expression, frame);
  if (!statement.recursive) return iterate(statement, source, 0, frame, nullptr);
  keep(frame);
  write(render_recursive(statement, source, 0, frame));
  return Flow::on;
}

Value Interpreter::render_recursive(const Statement& statement, const Value& source, std::int64_t depth,
                                    const FramePointer& outer) {
  const Budget::Level level(budget_);
  const auto frame = std::make_shared<Frame>(&budget_, outer, statement.function.depth, statement.function.slots);
  keep(frame);
  Output held(budget_);
  {
    const Redirect redirect(out_, held);
    iterate(statement, source, depth, frame, [this, &statement, depth, outer](const Value& inner) {
      return render_recursive(statement, inner, depth + 1, outer);
    });
  }
  return make_string(&budget_, held.take());
}

Interpreter::Flow Interpreter::iterate(const Statement& statement, const Value& source, std::int64_t depth,
                                       const FramePointer& frame, std::function<Value(const Value&)> recurse) {
  Loop::Keep wanted;
  if (statement.test) {
    enter(statement.test_loads, frame);
    wanted = [this, &statement, held = frame.get()](const Value& item) {
      const FramePointer frame(std::shared_ptr<void>(), held);  // which lives as long as the loop is asked
      assign(statement.target, item, frame, &Target::test_slot);
      return truth(evaluate(*statement.test, frame));
    };
    keep(frame);
  }
  const auto loop = std::make_shared<Loop>(&budget_, source, std::move(wanted), depth);
  if (statement.uses_loop) loop->recurse = std::move(recurse);
  bool ended = false;  // a body, by its own end: jinja2 takes `else` also where `continue` or `break` kept it from that
  while (const auto item = loop->advance()) {
    enter(statement.loads, frame);
    if (statement.uses_loop) (*frame)[statement.loop] = Value(Kind::loop, loop);
    assign(statement.target, *item, frame);
    const Flow flow = execute(statement.body, frame);
    if (flow == Flow::break_loop) break;
    ended = ended || flow == Flow::on;
  }
  if (ended) return Flow::on;
  enter(statement.other_loads, frame);
  return execute(statement.other, frame);
}

}  // namespace zero::jinja
