#include "models/text/jinja/language/scopes.h"

#include <map>
#include <memory>
#include <set>

#include "base/error.h"
#include "base/log.h"
#include "models/text/jinja/error.h"
#include "models/text/jinja/language/name_search.h"
#include "models/text/jinja/library/library.h"

namespace zero::jinja {
namespace {

/// A function of the template: the template itself, a macro, the body of a call block or of a recursive loop.
struct Room {
  int depth = 0;
  int slots = 0;
};

/// The names of one scope that have been seen so far. Copies for the branches of a condition share their slots.
class Scope {
 public:
  Scope(const Scope* parent, Room* room)
      : parent_(parent), room_(room), slots_(std::make_shared<std::map<std::string, Slot>>()) {}

  const Slot* find(const std::string& name) const {
    if (const auto found = variables_.find(name); found != variables_.end()) return &found->second;
    return parent_ ? parent_->find(name) : nullptr;
  }

  Slot slot(const std::string& name) const {
    const Slot* found = find(name);
    ZERO_CHECK(found, "no slot for " + name);
    return *found;
  }

  void use(const std::string& name) {
    if (!find(name)) define(name, {Load::Kind::resolve, {}, {}, name});
  }

  void set(const std::string& name) {
    set_.insert(name);
    if (variables_.contains(name)) return;
    const Slot* outer = parent_ ? parent_->find(name) : nullptr;
    define(name, outer ? Load{Load::Kind::alias, {}, *outer, {}} : Load{Load::Kind::missing, {}, {}, {}});
  }

  Slot declare(const std::string& name) {
    set_.insert(name);
    return define(name, {});
  }

  /// Names that the branches of a condition set may be set afterwards. Until then the name has its outer meaning.
  void join(const std::vector<Scope>& branches) {
    std::set<std::string> set_in_some;
    for (const Scope& branch : branches) set_in_some.insert(branch.set_.begin(), branch.set_.end());
    for (const std::string& name : set_) set_in_some.erase(name);
    for (const Scope& branch : branches) {
      for (const auto& [name, slot] : branch.variables_) variables_[name] = slot;
      for (const auto& [index, load] : branch.loads_) loads_[index] = load;
      set_.insert(branch.set_.begin(), branch.set_.end());
    }
    for (const std::string& name : set_in_some) {
      const Slot slot = this->slot(name);
      const Slot* outer = parent_ ? parent_->find(name) : nullptr;
      loads_[slot.index] =
          outer ? Load{Load::Kind::alias, slot, *outer, {}} : Load{Load::Kind::resolve, slot, {}, name};
    }
  }

  std::vector<Load> loads() const {
    std::vector<Load> all;
    for (const auto& [index, load] : loads_)
      if (load.kind != Load::Kind::none) all.push_back(load);
    return all;
  }

  Room* room() const { return room_; }

 private:
  Slot define(const std::string& name, Load load) {
    const auto [place, fresh] = slots_->try_emplace(name, Slot{room_->depth, room_->slots});
    if (fresh) ++room_->slots;
    variables_[name] = load.slot = place->second;
    loads_[place->second.index] = std::move(load);
    return place->second;
  }

  const Scope* parent_;
  Room* room_;
  std::shared_ptr<std::map<std::string, Slot>> slots_;
  std::map<std::string, Slot> variables_;
  std::map<int, Load> loads_;
  std::set<std::string> set_;
};

/// First pass: finds the names that a scope uses and sets. Inner scopes are analysed when they are entered.
void see(Scope& scope, const Block& block);

void see(Scope& scope, const Expression* expression) {
  if (!expression) return;
  if (expression->kind == Expression::Kind::name) scope.use(expression->name);
  for (const Expression* part : expression->operands) see(scope, part);
  for (const Expression* part : expression->arguments.positional) see(scope, part);
  for (const auto& [name, part] : expression->arguments.named) see(scope, part);
  see(scope, expression->arguments.star);
  see(scope, expression->arguments.double_star);
}

void see_target(Scope& scope, const Target& target, bool parameter) {
  for (const Target& part : target.parts) see_target(scope, part, parameter);
  if (target.kind == Target::Kind::attribute) scope.use(target.name);
  if (target.kind != Target::Kind::name) return;
  if (parameter)
    scope.declare(target.name);
  else
    scope.set(target.name);
}

Scope branch(const Scope& scope, const Block& block) {
  Scope copy = scope;
  see(copy, block);
  return copy;
}

void see_condition(Scope& scope, const Statement& statement) {
  see(scope, statement.branches[0].first);
  Scope others = scope;
  for (std::size_t i = 1; i < statement.branches.size(); ++i) {
    see(others, statement.branches[i].first);
    others.join({branch(others, statement.branches[i].second)});
  }
  scope.join({branch(scope, statement.branches[0].second), others, branch(scope, statement.other)});
}

void see(Scope& scope, const Statement& statement) {
  using Kind = Statement::Kind;
  switch (statement.kind) {
    case Kind::condition:
      return see_condition(scope, statement);
    case Kind::print:
    case Kind::loop:
    case Kind::call:
    case Kind::filter:
      return see(scope, statement.expression);
    case Kind::assign:
      see(scope, statement.expression);
      return see_target(scope, statement.target, false);
    case Kind::assign_block:
    case Kind::macro:
      return see_target(scope, statement.target, false);
    case Kind::with:
      for (const Expression* value : statement.values) see(scope, value);
      return;
    default:
      return;
  }
}

void see(Scope& scope, const Block& block) {
  for (const Statement* statement : block) see(scope, *statement);
}

/// Second pass: assigns a slot to every name.
class Resolver {
 public:
  struct Where {
    bool tolerant = false;  // in a condition, where an unknown filter fails only when it is reached
    bool loop = false;      // break and continue have one to leave
  };

  void resolve(Scope& scope, Block& block, Where where) {
    for (Statement* statement : block) resolve(scope, *statement, where);
  }

 private:
  [[noreturn]] static void fail(const std::string& message, int line) {
    throw TemplateError(TemplateError::Kind::syntax, message, line);
  }

  void resolve(Scope& scope, Expression* expression, bool tolerant) {
    if (!expression) return;
    using Kind = Expression::Kind;
    tolerant = tolerant || expression->kind == Kind::conditional;
    if (expression->kind == Kind::name) expression->slot = scope.slot(expression->name);
    if (expression->kind == Kind::filter && !tolerant && !find_filter(expression->name))
      fail(text("No filter named '", expression->name, "'."), expression->line);
    if (expression->kind == Kind::test && !tolerant && !find_test(expression->name))
      fail(text("No test named '", expression->name, "'."), expression->line);
    for (Expression* part : expression->operands) resolve(scope, part, tolerant);
    for (Expression* part : expression->arguments.positional) resolve(scope, part, tolerant);
    for (auto& [name, part] : expression->arguments.named) resolve(scope, part, tolerant);
    resolve(scope, expression->arguments.star, tolerant);
    resolve(scope, expression->arguments.double_star, tolerant);
  }

  void resolve_target(const Scope& scope, Target& target, Slot Target::*slot = &Target::slot) {
    for (Target& part : target.parts) resolve_target(scope, part, slot);
    if (target.kind == Target::Kind::tuple) return;
    if (loops_ > 0 && target.kind == Target::Kind::name && target.name == "loop")
      fail("Can't assign to special loop variable in for-loop target", target.line);
    target.*slot = scope.slot(target.name);
  }

  void resolve(Scope& scope, Statement& statement, Where where) {
    using Kind = Statement::Kind;
    switch (statement.kind) {
      case Kind::text:
        return;
      case Kind::print:
        return resolve(scope, statement.expression, where.tolerant);
      case Kind::condition:
        where.tolerant = true;
        for (auto& [test, body] : statement.branches) {
          resolve(scope, test, true);
          resolve(scope, body, where);
        }
        return resolve(scope, statement.other, where);
      case Kind::assign:
        resolve(scope, statement.expression, where.tolerant);
        return resolve_target(scope, statement.target);
      case Kind::loop:
        return resolve_loop(scope, statement, where);
      case Kind::macro:
        resolve_target(scope, statement.target);
        return resolve_function(scope, statement.function);
      case Kind::call:
        resolve(scope, statement.expression, where.tolerant);
        return resolve_function(scope, statement.function);
      case Kind::generation:
        return resolve_function(scope, statement.function);
      case Kind::break_loop:
      case Kind::continue_loop:
        if (!where.loop) fail("break and continue stand in loops only", statement.line);
        return;
      default:
        return resolve_inner(scope, statement, where);
    }
  }

  /// set, filter and with blocks, autoescape: a scope of their own in the same function.
  void resolve_inner(Scope& scope, Statement& statement, Where where) {
    for (Expression* value : statement.values) resolve(scope, value, where.tolerant);
    where.tolerant = false;
    Scope inner(&scope, scope.room());
    for (const Target& target : statement.targets) see_target(inner, target, true);
    see(inner, statement.body);
    see(inner, statement.expression);
    resolve(inner, statement.expression, false);
    resolve(inner, statement.body, where);
    for (Target& target : statement.targets) resolve_target(inner, target);
    if (statement.kind == Statement::Kind::assign_block) resolve_target(scope, statement.target);
    statement.loads = inner.loads();
  }

  void resolve_loop(Scope& scope, Statement& statement, Where where) {
    resolve(scope, statement.expression, where.tolerant);
    Room own{scope.room()->depth + 1, 0};
    Room* room = statement.recursive ? &own : scope.room();
    ++loops_;
    Scope inner(&scope, room), other(&scope, room), test(&scope, room);
    statement.uses_loop = statement.recursive || uses_name(statement.body, "loop");
    if (statement.uses_loop) statement.loop = inner.declare("loop");
    see_target(inner, statement.target, true);
    see(inner, statement.body);
    see(other, statement.other);
    resolve_target(inner, statement.target);
    resolve(inner, statement.body, {false, true});
    resolve(other, statement.other, {false, where.loop && !statement.recursive});
    if (statement.test) {
      see_target(test, statement.target, true);
      see(test, statement.test);
      resolve_target(test, statement.target, &Target::test_slot);
      resolve(test, statement.test, false);
    }
    --loops_;
    statement.loads = inner.loads();
    statement.other_loads = other.loads();
    statement.test_loads = test.loads();
    statement.function.depth = own.depth;
    statement.function.slots = own.slots;
  }

  void resolve_function(Scope& scope, Function& function) {
    Room room{scope.room()->depth + 1, 0};
    Scope inner(&scope, &room);
    const auto is_parameter = [&](std::string_view name) {
      for (const Target& parameter : function.parameters)
        if (parameter.name == name) return true;
      return false;
    };
    for (Target& parameter : function.parameters) inner.declare(parameter.name);
    const auto declare = [&](const char* name, bool& takes, Slot& slot) {
      if (is_parameter(name) || !uses_name(function.body, name)) return;
      takes = true;
      slot = inner.declare(name);
    };
    const std::size_t required = function.parameters.size() - function.defaults.size();
    for (std::size_t i = 0; i < required; ++i)
      if (function.parameters[i].name == "caller")
        fail(
            "When defining macros or call blocks the special \"caller\" argument must be omitted or be given a default.",
            function.parameters[i].line);
    declare("caller", function.takes_caller, function.caller);
    declare("kwargs", function.takes_named, function.named);
    declare("varargs", function.takes_more, function.more);
    for (const Expression* value : function.defaults) see(inner, value);
    see(inner, function.body);
    for (Target& parameter : function.parameters) parameter.slot = inner.slot(parameter.name);
    for (Expression* value : function.defaults) resolve(inner, value, false);
    resolve(inner, function.body, {});
    function.loads = inner.loads();
    function.depth = room.depth;
    function.slots = room.slots;
  }

  int loops_ = 0;
};

}  // namespace

void resolve_names(Syntax& syntax) {
  Room room;
  Scope scope(nullptr, &room);
  see(scope, syntax.body);
  Resolver().resolve(scope, syntax.body, {});
  syntax.loads = scope.loads();
  syntax.slots = room.slots;
}

}  // namespace zero::jinja
