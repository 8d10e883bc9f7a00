#include "models/text/jinja/language/parser.h"

#include <algorithm>

#include "base/log.h"
#include "models/text/jinja/error.h"
#include "models/text/jinja/language/expression_parser.h"
#include "models/text/jinja/language/scopes.h"

namespace zero::jinja {
namespace {

using Kind = Statement::Kind;
using Names = std::vector<std::string_view>;

class Parser {
 public:
  explicit Parser(TokenStream& tokens) : tokens_(tokens) {}

  /// Parses up to one of the statements in `ends`, whose name is then the current token, or up to the end of the
  /// template.
  Block parse_block(const Names& ends) {
    const TokenStream::Level level(tokens_);
    Block block;
    for (;;) {
      switch (tokens_.now().kind) {
        case Token::Kind::data: {
          Statement* statement = make(Kind::text);
          statement->text = tokens_.next().text;
          block.push_back(statement);
          break;
        }
        case Token::Kind::variable_begin: {
          Statement* statement = make(Kind::print);
          tokens_.next();
          statement->expression = parse_tuple(tokens_);
          tokens_.expect(Token::Kind::variable_end, "end of print statement");
          block.push_back(statement);
          break;
        }
        case Token::Kind::block_begin:
          tokens_.next();
          for (const std::string_view end : ends)
            if (tokens_.at_name(end)) return block;
          parse_statement(block);
          tokens_.expect(Token::Kind::block_end, "end of statement block");
          break;
        default:
          if (!ends.empty()) tokens_.fail(text("Unexpected end of template. Looking for '", ends.back(), "'"));
          return block;
      }
    }
  }

 private:
  Statement* make(Kind kind) {
    Statement& statement = tokens_.syntax.statements.emplace_back();
    statement.kind = kind;
    statement.line = tokens_.now().line;
    return &statement;
  }

  /// Parses the body that follows a statement's head.
  Block body(const Names& ends) {
    tokens_.skip_symbol(":");
    tokens_.expect(Token::Kind::block_end, "end of statement block");
    return parse_block(ends);
  }

  Block body_to(std::string_view end) {
    Block block = body({end});
    tokens_.next();
    return block;
  }

  void parse_statement(Block& block) {
    if (!tokens_.at(Token::Kind::name)) tokens_.fail("tag name expected");
    const std::string name = tokens_.now().text;
    if (name == "print") return parse_print(block);
    Statement* statement = nullptr;
    if (name == "if") statement = parse_if();
    if (name == "for") statement = parse_for();
    if (name == "set") statement = parse_set();
    if (name == "macro") statement = parse_macro();
    if (name == "call") statement = parse_call_block();
    if (name == "filter") statement = parse_filter_block();
    if (name == "with") statement = parse_with();
    if (name == "generation") statement = parse_generation();
    if (name == "break" || name == "continue") statement = parse_control(name);
    if (name == "autoescape") statement = parse_autoescape();
    if (name == "block" || name == "include" || name == "import" || name == "from" || name == "extends")
      throw TemplateError(TemplateError::Kind::refused,
                          text("{% ", name, " %} is for templates of several files, which chat templates are not"),
                          tokens_.now().line);
    if (!statement) tokens_.fail(text("Encountered unknown tag '", name, "'."));
    block.push_back(statement);
  }

  void parse_print(Block& block) {
    for (bool first = true; first || tokens_.at_symbol(","); first = false) {
      Statement* statement = make(Kind::print);
      tokens_.next();
      if (first && tokens_.at(Token::Kind::block_end)) return;
      statement->expression = parse_expression(tokens_);
      block.push_back(statement);
    }
  }

  Statement* parse_if() {
    Statement* statement = make(Kind::condition);
    for (;;) {
      tokens_.next();
      Expression* test = parse_tuple(tokens_, {.conditional = false});
      statement->branches.emplace_back(test, body({"elif", "else", "endif"}));
      if (tokens_.at_name("elif")) continue;
      if (tokens_.next().text == "else") statement->other = body_to("endif");
      return statement;
    }
  }

  Statement* parse_for() {
    Statement* statement = make(Kind::loop);
    tokens_.next();
    statement->target = parse_target(tokens_, "in", false);
    tokens_.expect_name("in");
    statement->expression = parse_tuple(tokens_, {.conditional = false, .stop = "recursive"});
    if (tokens_.skip_name("if")) statement->test = parse_expression(tokens_);
    statement->recursive = tokens_.skip_name("recursive");
    statement->body = body({"endfor", "else"});
    if (tokens_.next().text == "else") statement->other = body_to("endfor");
    return statement;
  }

  Statement* parse_set() {
    Statement* statement = make(Kind::assign);
    tokens_.next();
    statement->target = parse_target(tokens_, "", true);
    if (tokens_.skip_symbol("=")) {
      statement->expression = parse_tuple(tokens_);
      return statement;
    }
    statement->kind = Kind::assign_block;
    statement->expression = parse_filters(tokens_, nullptr);
    statement->body = body_to("endset");
    return statement;
  }

  void parse_signature(Function& function) {
    tokens_.expect_symbol("(");
    while (!tokens_.at_symbol(")")) {
      if (!function.parameters.empty()) tokens_.expect_symbol(",");
      function.parameters.push_back(parse_name_target(tokens_));
      for (std::size_t i = 0; i + 1 < function.parameters.size(); ++i)
        if (function.parameters[i].name == function.parameters.back().name)
          tokens_.fail(text("duplicate argument '", function.parameters.back().name, "'"));
      if (tokens_.skip_symbol("="))
        function.defaults.push_back(parse_expression(tokens_));
      else if (!function.defaults.empty())
        tokens_.fail("non-default argument follows default argument");
    }
    tokens_.expect_symbol(")");
  }

  Statement* parse_macro() {
    Statement* statement = make(Kind::macro);
    tokens_.next();
    statement->target = parse_name_target(tokens_);
    statement->function.name = statement->target.name;
    parse_signature(statement->function);
    statement->function.body = body_to("endmacro");
    return statement;
  }

  Statement* parse_call_block() {
    Statement* statement = make(Kind::call);
    tokens_.next();
    if (tokens_.at_symbol("(")) parse_signature(statement->function);
    statement->expression = parse_expression(tokens_);
    if (statement->expression->kind != Expression::Kind::call) tokens_.fail("expected call", statement->line);
    statement->function.name = "caller";
    statement->function.body = body_to("endcall");
    return statement;
  }

  Statement* parse_generation() {
    Statement* statement = make(Kind::generation);
    tokens_.next();
    statement->function.name = "caller";
    statement->function.body = body_to("endgeneration");
    tokens_.syntax.has_generation = true;
    return statement;
  }

  Statement* parse_filter_block() {
    Statement* statement = make(Kind::filter);
    tokens_.next();
    statement->expression = parse_filters(tokens_, nullptr, true);
    statement->body = body_to("endfilter");
    return statement;
  }

  Statement* parse_with() {
    Statement* statement = make(Kind::with);
    tokens_.next();
    while (!tokens_.at(Token::Kind::block_end)) {
      if (!statement->targets.empty()) tokens_.expect_symbol(",");
      statement->targets.push_back(parse_target(tokens_, "", false));
      tokens_.expect_symbol("=");
      statement->values.push_back(parse_expression(tokens_));
    }
    statement->body = body_to("endwith");
    return statement;
  }

  /// This engine never escapes text: autoescape false is just its body, and autoescape true is rejected.
  Statement* parse_autoescape() {
    Statement* statement = make(Kind::scope);
    tokens_.next();
    const Expression* wanted = parse_expression(tokens_);
    if (wanted->kind != Expression::Kind::constant || !wanted->value.is(zero::jinja::Kind::boolean) ||
        wanted->value.boolean())
      throw TemplateError(TemplateError::Kind::refused, "{% autoescape %}: texts are not escaped here",
                          statement->line);
    statement->body = body_to("endautoescape");
    return statement;
  }

  Statement* parse_control(const std::string& name) {
    Statement* statement = make(name == "break" ? Kind::break_loop : Kind::continue_loop);
    tokens_.next();
    return statement;
  }

  TokenStream& tokens_;
};

void add_words(const Token& token, Syntax& syntax) {
  if (token.kind == Token::Kind::name) syntax.names.insert(token.text);
  if (token.kind != Token::Kind::string) return;
  syntax.strings.insert(token.text);
  for (std::size_t begin = 0; begin <= token.text.size();) {  // map(attribute='function.name')
    const std::size_t end = std::min(token.text.find('.', begin), token.text.size());
    syntax.strings.insert(token.text.substr(begin, end - begin));
    begin = end + 1;
  }
}

}  // namespace

Syntax parse(std::string_view source) {
  Syntax syntax;
  std::vector<Token> read = tokenize(source);
  for (const Token& token : read) add_words(token, syntax);
  TokenStream tokens(std::move(read), syntax);
  syntax.body = Parser(tokens).parse_block({});
  resolve_names(syntax);
  return syntax;
}

}  // namespace zero::jinja
