#include "models/text/jinja/language/token_stream.h"

#include <algorithm>

#include "base/log.h"
#include "models/text/jinja/error.h"

namespace zero::jinja {
namespace {

constexpr int max_expression_depth = 400;  // operators, calls and brackets in one another
constexpr int max_parser_depth = 100;      // brackets and statements in one another

}  // namespace

std::string described(const Token& token) {
  switch (token.kind) {
    case Token::Kind::end:
      return "end of template";
    case Token::Kind::block_end:
      return "end of statement block";
    case Token::Kind::variable_end:
      return "end of print statement";
    default:
      return token.text;
  }
}

Token TokenStream::next() {
  Token token = tokens_[at_];
  if (at_ + 1 < tokens_.size()) ++at_;
  return token;
}

bool TokenStream::skip_name(std::string_view name) {
  if (!at_name(name)) return false;
  next();
  return true;
}

bool TokenStream::skip_symbol(std::string_view symbol) {
  if (!at_symbol(symbol)) return false;
  next();
  return true;
}

Token TokenStream::expect(Token::Kind kind, std::string_view what) {
  if (!at(kind)) unexpected(what);
  return next();
}

void TokenStream::expect_name(std::string_view name) {
  if (!skip_name(name)) unexpected(text("'", name, "'"));
}

void TokenStream::expect_symbol(std::string_view symbol) {
  if (!skip_symbol(symbol)) unexpected(text("'", symbol, "'"));
}

void TokenStream::fail(const std::string& message, int line) const {
  throw TemplateError(TemplateError::Kind::syntax, message, line > 0 ? line : now().line);
}

void TokenStream::unexpected(std::string_view expected) const {
  fail(text("expected ", expected, ", got '", described(now()), "'"));
}

Expression* TokenStream::make(Expression::Kind kind, int line, Expressions operands, std::string name) {
  Expression& node = syntax.expressions.emplace_back();
  node.kind = kind;
  node.line = line;
  node.operands = std::move(operands);
  node.name = std::move(name);
  measure(node);
  return &node;
}

void TokenStream::measure(Expression& node) const {
  const auto see = [&](const Expression* part) {
    if (part) node.depth = std::max(node.depth, part->depth + 1);
  };
  for (const Expression* part : node.operands) see(part);
  for (const Expression* part : node.arguments.positional) see(part);
  for (const auto& [name, part] : node.arguments.named) see(part);
  see(node.arguments.star);
  see(node.arguments.double_star);
  if (node.depth > max_expression_depth)
    throw TemplateError(TemplateError::Kind::bound,
                        text("an expression is nested deeper than ", max_expression_depth, " levels"), node.line);
}

TokenStream::Level::Level(TokenStream& stream) : stream_(stream) {
  if (++stream_.depth_ <= max_parser_depth) return;
  --stream_.depth_;
  throw TemplateError(TemplateError::Kind::bound,
                      text("brackets and statements are nested deeper than ", max_parser_depth, " levels"),
                      stream_.now().line);
}

}  // namespace zero::jinja
