#pragma once
// TokenStream: a template's tokens, the parser's position, and the nodes that the parser makes. Does not include
// LibTorch.
#include <string>
#include <string_view>
#include <vector>

#include "models/text/jinja/language/lexer.h"
#include "models/text/jinja/language/syntax.h"

namespace zero::jinja {

class TokenStream {
 public:
  TokenStream(std::vector<Token> tokens, Syntax& syntax) : syntax(syntax), tokens_(std::move(tokens)) {}

  const Token& now() const { return tokens_[at_]; }
  const Token& ahead() const { return tokens_[at_ + 1 < tokens_.size() ? at_ + 1 : at_]; }
  Token next();
  bool at(Token::Kind kind) const { return now().kind == kind; }
  bool at_name(std::string_view name) const { return at(Token::Kind::name) && now().text == name; }
  bool at_symbol(std::string_view symbol) const { return at(Token::Kind::symbol) && now().text == symbol; }
  bool skip_name(std::string_view name);
  bool skip_symbol(std::string_view symbol);
  Token expect(Token::Kind kind, std::string_view what);
  void expect_name(std::string_view name);
  void expect_symbol(std::string_view symbol);
  [[noreturn]] void fail(const std::string& message, int line = 0) const;
  [[noreturn]] void unexpected(std::string_view expected) const;

  /// Makes a node with these operands. Fails if the tree becomes deeper than the interpreter may recurse.
  Expression* make(Expression::Kind kind, int line, Expressions operands, std::string name = "");
  void measure(Expression& expression) const;

  /// Counts one level of recursion while it lives.
  class Level {
   public:
    explicit Level(TokenStream& stream);
    Level(const Level&) = delete;
    ~Level() { --stream_.depth_; }

   private:
    TokenStream& stream_;
  };

  Syntax& syntax;

 private:
  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

/// Describes a token for messages.
std::string described(const Token& token);

}  // namespace zero::jinja
