#include "models/text/jinja/language/expression_parser.h"

#include <charconv>

#include "base/log.h"
#include "models/text/jinja/error.h"

namespace zero::jinja {
namespace {

using Node = Expression::Kind;
using Level = TokenStream::Level;

Expression* parse_unary(TokenStream& tokens, bool filters);

Expression* constant(TokenStream& tokens, int line, Value value) {
  Expression* node = tokens.make(Node::constant, line, {});
  node->value = std::move(value);
  return node;
}

/// Left-associative operators of one precedence.
template <class Operand>
Expression* parse_chain(TokenStream& tokens, std::initializer_list<std::string_view> symbols, const Operand& operand) {
  Expression* left = operand();
  for (;;) {
    bool found = false;
    for (const std::string_view symbol : symbols) found = found || tokens.at_symbol(symbol);
    if (!found) return left;
    const Token symbol = tokens.next();
    left = tokens.make(Node::binary, symbol.line, {left, operand()}, symbol.text);
  }
}

Expression* parse_power(TokenStream& tokens) {
  return parse_chain(tokens, {"**"}, [&] { return parse_unary(tokens, true); });
}

Expression* parse_product(TokenStream& tokens) {
  return parse_chain(tokens, {"*", "/", "//", "%"}, [&] { return parse_power(tokens); });
}

Expression* parse_concatenation(TokenStream& tokens) {
  const int line = tokens.now().line;
  Expressions parts{parse_product(tokens)};
  while (tokens.skip_symbol("~")) parts.push_back(parse_product(tokens));
  return parts.size() == 1 ? parts[0] : tokens.make(Node::concatenate, line, std::move(parts));
}

Expression* parse_sum(TokenStream& tokens) {
  return parse_chain(tokens, {"+", "-"}, [&] { return parse_concatenation(tokens); });
}

/// Reads the comparison operator that begins here. Returns an empty text if there is none.
std::string comparison(TokenStream& tokens) {
  for (const std::string_view symbol : {"==", "!=", "<", "<=", ">", ">="})
    if (tokens.skip_symbol(symbol)) return std::string(symbol);
  if (tokens.skip_name("in")) return "in";
  if (!tokens.at_name("not") || tokens.ahead().kind != Token::Kind::name || tokens.ahead().text != "in") return "";
  tokens.next();
  tokens.next();
  return "not in";
}

Expression* parse_comparison(TokenStream& tokens) {
  const int line = tokens.now().line;
  Expressions operands{parse_sum(tokens)};
  std::vector<std::string> comparisons;
  for (std::string symbol = comparison(tokens); !symbol.empty(); symbol = comparison(tokens)) {
    comparisons.push_back(symbol);
    operands.push_back(parse_sum(tokens));
  }
  if (comparisons.empty()) return operands[0];
  Expression* node = tokens.make(Node::compare, line, std::move(operands));
  node->comparisons = std::move(comparisons);
  return node;
}

Expression* parse_not(TokenStream& tokens) {
  const Level level(tokens);
  const int line = tokens.now().line;
  if (!tokens.skip_name("not")) return parse_comparison(tokens);
  return tokens.make(Node::logical_not, line, {parse_not(tokens)});
}

Expression* parse_and(TokenStream& tokens) {
  Expression* left = parse_not(tokens);
  for (int line = tokens.now().line; tokens.skip_name("and"); line = tokens.now().line)
    left = tokens.make(Node::logical_and, line, {left, parse_not(tokens)});
  return left;
}

Expression* parse_or(TokenStream& tokens) {
  Expression* left = parse_and(tokens);
  for (int line = tokens.now().line; tokens.skip_name("or"); line = tokens.now().line)
    left = tokens.make(Node::logical_or, line, {left, parse_and(tokens)});
  return left;
}

Expression* parse_number(TokenStream& tokens) {
  const Token token = tokens.next();
  if (token.kind == Token::Kind::real)
    return constant(tokens, token.line, Value::real(std::strtod(token.text.c_str(), nullptr)));
  std::string_view digits = token.text;
  int base = 10;
  if (digits.size() > 2 && digits[0] == '0') {
    const char letter = static_cast<char>(digits[1] | 0x20);
    base = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 10;
    if (base != 10) digits.remove_prefix(2);
  }
  std::int64_t number = 0;
  if (std::from_chars(digits.data(), digits.data() + digits.size(), number, base).ec != std::errc())
    throw TemplateError(TemplateError::Kind::refused, text("the integer ", token.text, " does not fit into 64 bits"),
                        token.line);
  return constant(tokens, token.line, Value::integer(number));
}

Expression* parse_list(TokenStream& tokens) {
  const int line = tokens.next().line;
  Expressions items;
  while (!tokens.at_symbol("]")) {
    if (!items.empty()) tokens.expect_symbol(",");
    if (tokens.at_symbol("]")) break;
    items.push_back(parse_expression(tokens));
  }
  tokens.expect_symbol("]");
  return tokens.make(Node::list, line, std::move(items));
}

Expression* parse_dict(TokenStream& tokens) {
  const int line = tokens.next().line;
  Expressions entries;
  while (!tokens.at_symbol("}")) {
    if (!entries.empty()) tokens.expect_symbol(",");
    if (tokens.at_symbol("}")) break;
    entries.push_back(parse_expression(tokens));
    tokens.expect_symbol(":");
    entries.push_back(parse_expression(tokens));
  }
  tokens.expect_symbol("}");
  return tokens.make(Node::dict, line, std::move(entries));
}

Expression* parse_name(TokenStream& tokens) {
  const Token token = tokens.next();
  if (token.text == "true" || token.text == "True") return constant(tokens, token.line, Value::boolean(true));
  if (token.text == "false" || token.text == "False") return constant(tokens, token.line, Value::boolean(false));
  if (token.text == "none" || token.text == "None") return constant(tokens, token.line, Value::none());
  return tokens.make(Node::name, token.line, {}, token.text);
}

Expression* parse_primary(TokenStream& tokens) {
  const Level level(tokens);
  const int line = tokens.now().line;
  switch (tokens.now().kind) {
    case Token::Kind::name:
      return parse_name(tokens);
    case Token::Kind::string: {
      std::string joined;
      while (tokens.at(Token::Kind::string)) joined += tokens.next().text;
      return constant(tokens, line, make_string(nullptr, std::move(joined)));
    }
    case Token::Kind::integer:
    case Token::Kind::real:
      return parse_number(tokens);
    default:
      break;
  }
  if (tokens.skip_symbol("(")) {
    Expression* inner = parse_tuple(tokens, {.brackets = true});
    tokens.expect_symbol(")");
    return inner;
  }
  if (tokens.at_symbol("[")) return parse_list(tokens);
  if (tokens.at_symbol("{")) return parse_dict(tokens);
  tokens.fail(text("unexpected '", described(tokens.now()), "'"));
}

void parse_argument(TokenStream& tokens, CallArguments& arguments) {
  const auto ensure = [&](bool fits) {
    if (!fits) tokens.fail("invalid syntax for function call expression");
  };
  if (tokens.skip_symbol("*")) {
    ensure(!arguments.star && !arguments.double_star);
    arguments.star = parse_expression(tokens);
  } else if (tokens.skip_symbol("**")) {
    ensure(!arguments.double_star);
    arguments.double_star = parse_expression(tokens);
  } else if (tokens.at(Token::Kind::name) && tokens.ahead().kind == Token::Kind::symbol && tokens.ahead().text == "=") {
    ensure(!arguments.double_star);
    const std::string name = tokens.next().text;
    tokens.next();
    for (const auto& [given, value] : arguments.named)
      if (given == name) tokens.fail(text("keyword argument repeated: ", name));
    arguments.named.emplace_back(name, parse_expression(tokens));
  } else {
    ensure(!arguments.star && !arguments.double_star && arguments.named.empty());
    arguments.positional.push_back(parse_expression(tokens));
  }
}

CallArguments parse_arguments(TokenStream& tokens) {
  CallArguments arguments;
  tokens.expect_symbol("(");
  for (bool first = true; !tokens.at_symbol(")"); first = false) {
    if (!first) tokens.expect_symbol(",");
    if (!first && tokens.at_symbol(")")) break;
    parse_argument(tokens, arguments);
  }
  tokens.expect_symbol(")");
  return arguments;
}

Expression* parse_call(TokenStream& tokens, Expression* callee) {
  const int line = tokens.now().line;
  Expression* node = tokens.make(Node::call, line, {callee});
  node->arguments = parse_arguments(tokens);
  tokens.measure(*node);
  return node;
}

/// Parses an index or a slice between square brackets.
Expression* parse_subscribed(TokenStream& tokens, Expression* subject, int line) {
  const auto ends = [&] { return tokens.at_symbol("]") || tokens.at_symbol(",") || tokens.at_symbol(":"); };
  Expression* begin = tokens.at_symbol(":") ? nullptr : parse_expression(tokens);
  if (!tokens.skip_symbol(":")) return tokens.make(Node::item, line, {subject, begin});
  Expression* end = ends() ? nullptr : parse_expression(tokens);
  Expression* step = tokens.skip_symbol(":") && !ends() ? parse_expression(tokens) : nullptr;
  return tokens.make(Node::slice, line, {subject, begin, end, step});
}

Expression* parse_subscript(TokenStream& tokens, Expression* subject) {
  const Token open = tokens.next();
  if (open.text == ".") {
    const Token attribute = tokens.next();
    if (attribute.kind == Token::Kind::name) return tokens.make(Node::attribute, open.line, {subject}, attribute.text);
    if (attribute.kind != Token::Kind::integer) tokens.fail("expected name or number", attribute.line);
    return tokens.make(
        Node::item, open.line,
        {subject, constant(tokens, attribute.line, Value::integer(std::strtoll(attribute.text.c_str(), nullptr, 0)))});
  }
  if (tokens.at_symbol("]")) tokens.fail("an index is missing");
  Expression* node = parse_subscribed(tokens, subject, open.line);
  if (!tokens.at_symbol(",")) {
    tokens.expect_symbol("]");
    return node;
  }
  if (node->kind != Node::item) refuse("slices of several dimensions are not done here");
  Expressions parts{node->operands[1]};
  while (tokens.skip_symbol(",")) parts.push_back(parse_expression(tokens));
  tokens.expect_symbol("]");
  return tokens.make(Node::item, open.line, {subject, tokens.make(Node::tuple, open.line, std::move(parts))});
}

Expression* parse_postfix(TokenStream& tokens, Expression* node) {
  for (;;) {
    if (tokens.at_symbol(".") || tokens.at_symbol("["))
      node = parse_subscript(tokens, node);
    else if (tokens.at_symbol("("))
      node = parse_call(tokens, node);
    else
      return node;
  }
}

std::string dotted_name(TokenStream& tokens) {
  std::string name = tokens.expect(Token::Kind::name, "a name").text;
  while (tokens.skip_symbol(".")) name += "." + tokens.expect(Token::Kind::name, "a name").text;
  return name;
}

bool begins_test_argument(const TokenStream& tokens) {
  switch (tokens.now().kind) {
    case Token::Kind::name:
      return !tokens.at_name("else") && !tokens.at_name("or") && !tokens.at_name("and");
    case Token::Kind::string:
    case Token::Kind::integer:
    case Token::Kind::real:
      return true;
    default:
      return tokens.at_symbol("[") || tokens.at_symbol("{");
  }
}

Expression* parse_test(TokenStream& tokens, Expression* subject) {
  const int line = tokens.next().line;
  const bool negated = tokens.skip_name("not");
  Expression* node = tokens.make(Node::test, line, {subject}, dotted_name(tokens));
  if (tokens.at_symbol("(")) {
    node->arguments = parse_arguments(tokens);
  } else if (begins_test_argument(tokens)) {
    if (tokens.at_name("is")) tokens.fail("You cannot chain multiple tests with is");
    node->arguments.positional.push_back(parse_postfix(tokens, parse_primary(tokens)));
  }
  tokens.measure(*node);
  return negated ? tokens.make(Node::logical_not, line, {node}) : node;
}

Expression* parse_unary(TokenStream& tokens, bool filters) {
  const Level level(tokens);
  const int line = tokens.now().line;
  Expression* node = nullptr;
  if (tokens.skip_symbol("-"))
    node = tokens.make(Node::negate, line, {parse_unary(tokens, false)});
  else if (tokens.skip_symbol("+"))
    node = tokens.make(Node::plus, line, {parse_unary(tokens, false)});
  else
    node = parse_primary(tokens);
  node = parse_postfix(tokens, node);
  while (filters) {
    if (tokens.at_symbol("|"))
      node = parse_filters(tokens, node);
    else if (tokens.at_name("is"))
      node = parse_test(tokens, node);
    else if (tokens.at_symbol("("))
      node = parse_call(tokens, node);
    else
      break;
  }
  return node;
}

}  // namespace

bool ends_tuple(const TokenStream& tokens, std::string_view stop) {
  return tokens.at(Token::Kind::variable_end) || tokens.at(Token::Kind::block_end) || tokens.at_symbol(")") ||
         (!stop.empty() && tokens.at_name(stop));
}

Expression* parse_expression(TokenStream& tokens, bool conditional) {
  const Level level(tokens);
  Expression* node = parse_or(tokens);
  if (!conditional) return node;
  for (int line = tokens.now().line; tokens.skip_name("if"); line = tokens.now().line) {
    Expression* test = parse_or(tokens);
    Expression* otherwise = tokens.skip_name("else") ? parse_expression(tokens) : nullptr;
    node = tokens.make(Node::conditional, line, {test, node, otherwise});
  }
  return node;
}

Expression* parse_tuple(TokenStream& tokens, const TupleRules& rules) {
  const int line = tokens.now().line;
  Expressions parts;
  bool tuple = false;
  while (!ends_tuple(tokens, rules.stop)) {
    parts.push_back(parse_expression(tokens, rules.conditional));
    if (!tokens.skip_symbol(",")) break;
    tuple = true;
  }
  if (!tuple && parts.size() == 1) return parts[0];
  if (!tuple && !rules.brackets) tokens.fail(text("Expected an expression, got '", described(tokens.now()), "'"));
  return tokens.make(Node::tuple, line, std::move(parts));
}

Expression* parse_filters(TokenStream& tokens, Expression* subject, bool inside) {
  while (inside || tokens.at_symbol("|")) {
    if (!inside) tokens.next();
    inside = false;
    const int line = tokens.now().line;
    Expression* node = tokens.make(Node::filter, line, {subject}, dotted_name(tokens));
    if (tokens.at_symbol("(")) node->arguments = parse_arguments(tokens);
    tokens.measure(*node);
    subject = node;
  }
  return subject;
}

}  // namespace zero::jinja
