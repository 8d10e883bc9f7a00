#pragma once
// The syntax tree of a template. Does not include LibTorch.
#include <cstdint>
#include <deque>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "models/text/jinja/values/value.h"

namespace zero::jinja {

/// A variable: number `index` of the function at `depth`. Depth 0 is the template itself; macros are deeper.
struct Slot {
  int depth = 0;
  int index = 0;
};

struct Expression;
using Expressions = std::vector<Expression*>;

/// The arguments of a call, a filter or a test.
struct CallArguments {
  Expressions positional;
  std::vector<std::pair<std::string, Expression*>> named;
  Expression* star = nullptr;         // *args
  Expression* double_star = nullptr;  // **kwargs
};

struct Expression {
  enum class Kind : std::uint8_t {
    constant,   // value
    name,       // name, slot
    list,       // operands
    tuple,      // operands
    dict,       // operands: key, value, key, ...
    attribute,  // operands[0].name
    item,       // operands[0][operands[1]]
    slice,      // operands[0][operands[1]:operands[2]:operands[3]]; nullptr if omitted
    call,       // operands[0](arguments)
    filter,     // operands[0] | name(arguments); operands[0] is nullptr in a filter block
    test,       // operands[0] is name(arguments)
    negate,
    plus,
    logical_not,
    logical_and,
    logical_or,
    binary,       // operands[0] name operands[1]: + - * / // % **
    concatenate,  // operands[0] ~ operands[1] ~ ...
    compare,      // operands[0] comparisons[0] operands[1] ...
    conditional,  // operands[1] if operands[0] else operands[2], which may be nullptr
  };
  Kind kind = Kind::constant;
  int line = 0;
  int depth = 1;
  bool tolerant = false;  // an unknown filter or test fails only when it runs
  std::string name;
  Slot slot;
  Value value;
  Expressions operands;
  CallArguments arguments;
  std::vector<std::string> comparisons;  // == != < <= > >= in "not in"
};

/// The target of an assignment.
struct Target {
  enum class Kind : std::uint8_t { name, attribute, tuple };
  Kind kind = Kind::name;
  int line = 0;
  std::string name, attribute;  // attribute: a namespace's, if the target is an attribute
  Slot slot;
  Slot test_slot;  // of a for statement's target within its `if`
  std::vector<Target> parts;
};

/// A variable's value at the start of a scope.
struct Load {
  enum class Kind : std::uint8_t { none, resolve, alias, missing };
  Kind kind = Kind::none;
  Slot slot;
  Slot outer;        // alias: the variable that has the initial value
  std::string name;  // resolve: looked up among the caller's names and the global functions
};

struct Statement;
using Block = std::vector<Statement*>;

/// A macro, or the body of a call block.
struct Function {
  std::string name;
  std::vector<Target> parameters;
  Expressions defaults;  // of the last parameters
  Block body;
  int depth = 0;  // the depth of its slots
  int slots = 0;
  std::vector<Load> loads;
  bool takes_caller = false, takes_named = false, takes_more = false;
  Slot caller, named, more;  // kwargs, varargs
};

struct Statement {
  enum class Kind : std::uint8_t {
    text,          // text
    print,         // expression
    condition,     // branches
    loop,          // target in expression if test
    assign,        // target = expression
    assign_block,  // target = body | expression
    macro,         // function
    call,          // expression with function as its caller
    generation,    // function: the assistant's text
    filter,        // expression over body
    with,          // targets = values: body
    scope,         // body of an autoescape block
    break_loop,
    continue_loop,
  };
  Kind kind = Kind::text;
  int line = 0;
  std::string text;
  Expression* expression = nullptr;
  Target target;
  std::vector<Target> targets;
  Expressions values;
  Block body, other;  // other: else
  std::vector<std::pair<Expression*, Block>> branches;
  Expression* test = nullptr;
  bool recursive = false;
  Function function;  // for recursive loops too: depth and slots
  Slot loop;          // the variable "loop"
  bool uses_loop = false;
  std::vector<Load> loads, other_loads, test_loads;
};

using Words = std::set<std::string, std::less<>>;

struct Syntax {
  std::deque<Expression> expressions;
  std::deque<Statement> statements;
  Block body;
  int slots = 0;
  std::vector<Load> loads;
  bool has_generation = false;
  Words names, strings;  // in all expressions; strings are also split at dots
};

}  // namespace zero::jinja
