#include "models/text/jinja/language/name_search.h"

namespace zero::jinja {
namespace {

class NameSearch {
 public:
  explicit NameSearch(std::string_view name) : name_(name) {}

  bool found() const { return found_; }

  void see(const Block& block) {
    for (const Statement* statement : block)
      if (!found_) see(*statement);
  }

 private:
  void see(const Statement& statement) {
    if (statement.kind == Statement::Kind::assign) {  // the target stands first in jinja2's node
      see(statement.target);
      return see(statement.expression);
    }
    if (statement.kind == Statement::Kind::call) see(statement.expression);
    see(statement.target);
    for (const Target& target : statement.targets) see(target);
    if (statement.kind != Statement::Kind::call && statement.kind != Statement::Kind::filter) see(statement.expression);
    for (const Expression* value : statement.values) see(value);
    see(statement.function);
    for (const auto& [test, body] : statement.branches) {
      see(test);
      see(body);
    }
    see(statement.body);
    if (statement.kind == Statement::Kind::filter) see(statement.expression);
    see(statement.other);
    see(statement.test);
  }

  void see(const Function& function) {
    for (const Target& parameter : function.parameters) see(parameter);
    for (const Expression* value : function.defaults) see(value);
    see(function.body);
  }

  void see(const Target& target) {
    if (target.kind == Target::Kind::name && target.name == name_) hidden_ = true;
    for (const Target& part : target.parts) see(part);
  }

  void see(const Expression* expression) {
    if (!expression || found_) return;
    if (expression->kind == Expression::Kind::name && expression->name == name_ && !hidden_) found_ = true;
    for (const Expression* part : expression->operands) see(part);
    for (const Expression* part : expression->arguments.positional) see(part);
    for (const auto& [name, part] : expression->arguments.named) see(part);
    see(expression->arguments.star);
    see(expression->arguments.double_star);
  }

  std::string_view name_;
  bool hidden_ = false, found_ = false;
};

}  // namespace

bool uses_name(const Block& block, std::string_view name) {
  NameSearch search(name);
  search.see(block);
  return search.found();
}

}  // namespace zero::jinja
