#include "base/log.h"
#include "models/text/jinja/language/expression_parser.h"

namespace zero::jinja {
namespace {

Target parse_single_target(TokenStream& tokens, bool spaces) {
  if (!tokens.at_symbol("(")) {
    Target target = parse_name_target(tokens);
    if (!spaces || !tokens.skip_symbol(".")) return target;
    target.kind = Target::Kind::attribute;
    target.attribute = tokens.expect(Token::Kind::name, "a name").text;
    return target;
  }
  const TokenStream::Level level(tokens);
  tokens.next();
  Target inner = parse_target(tokens, "", false);
  tokens.expect_symbol(")");
  return inner;
}

}  // namespace

Target parse_name_target(TokenStream& tokens) {
  const Token token = tokens.expect(Token::Kind::name, "a name to assign to");
  for (const std::string_view constant : {"true", "false", "none", "True", "False", "None"})
    if (token.text == constant) tokens.fail(text("can't assign to '", token.text, "'"), token.line);
  Target target;
  target.line = token.line;
  target.name = token.text;
  return target;
}

Target parse_target(TokenStream& tokens, std::string_view stop, bool spaces) {
  Target target;
  target.line = tokens.now().line;
  bool tuple = false;
  while (!ends_tuple(tokens, stop) && !tokens.at_symbol("=")) {
    target.parts.push_back(parse_single_target(tokens, spaces));
    if (!tokens.skip_symbol(",")) break;
    tuple = true;
  }
  if (target.parts.empty()) tokens.fail(text("Expected a name to assign to, got '", described(tokens.now()), "'"));
  if (!tuple && target.parts.size() == 1) {
    Target single = std::move(target.parts[0]);
    return single;
  }
  target.kind = Target::Kind::tuple;
  return target;
}

}  // namespace zero::jinja
