#include "models/text/jinja/language/lexer.h"

#include <algorithm>
#include <array>

#include "base/log.h"
#include "models/text/jinja/error.h"
#include "models/text/jinja/language/string_literal.h"
#include "models/text/jinja/values/characters.h"

namespace zero::jinja {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || static_cast<unsigned char>(c) >= 0x80;
}
bool is_name_part(char c) { return is_name_start(c) || is_digit(c); }

std::string with_plain_lines(std::string_view source) {
  std::string plain;
  plain.reserve(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      plain += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    } else {
      plain += source[i];
    }
  }
  if (plain.ends_with('\n')) plain.pop_back();
  return plain;
}

class Lexer {
 public:
  explicit Lexer(std::string source) : source_(std::move(source)), rest_(source_) {}

  std::vector<Token> run() {
    while (at_ < rest_.size()) root();
    add(Token::Kind::end, "");
    return std::move(tokens_);
  }

 private:
  [[noreturn]] void fail(const std::string& message) const {
    throw TemplateError(TemplateError::Kind::syntax, message, line_);
  }

  void add(Token::Kind kind, std::string text) { tokens_.push_back({kind, line_, std::move(text)}); }

  /// Moves to `end` and counts lines.
  void pass(std::size_t end) {
    line_ += static_cast<int>(std::count(rest_.begin() + static_cast<std::ptrdiff_t>(at_),
                                         rest_.begin() + static_cast<std::ptrdiff_t>(end), '\n'));
    if (end > at_) line_starting_ = rest_[end - 1] == '\n';
    at_ = end;
  }

  bool here(std::string_view text) const { return rest_.substr(at_).starts_with(text); }
  std::size_t after_space(std::size_t at) const { return rest_.size() - strip_front(rest_.substr(at)).size(); }

  /// Reads the text up to the next tag, and the tag's opening.
  void root() {
    std::size_t open = at_;
    for (;; ++open) {
      open = rest_.find('{', open);
      if (open == std::string_view::npos || open + 1 >= rest_.size()) return data(rest_.size());
      if (const char c = rest_[open + 1]; c == '{' || c == '%' || c == '#') break;
    }
    const char kind = rest_[open + 1];
    const char sign = open + 2 < rest_.size() ? rest_[open + 2] : ' ';
    const bool signed_tag = sign == '-' || sign == '+';
    text_before(open, kind, signed_tag ? sign : ' ');
    const std::size_t body = open + (signed_tag ? 3 : 2);
    if (kind == '#') return comment(body);
    if (kind == '%' && raw(body)) return;
    pass(body);
    line_starting_ = false;
    add(kind == '{' ? Token::Kind::variable_begin : Token::Kind::block_begin, "");
    tag(kind == '{');
  }

  void data(std::size_t end) {
    if (end > at_) add(Token::Kind::data, std::string(rest_.substr(at_, end - at_)));
    pass(end);
  }

  /// The text before a tag, without the blanks that the tag's sign or lstrip_blocks strips.
  void text_before(std::size_t open, char kind, char sign) {
    std::string_view piece = rest_.substr(at_, open - at_);
    if (sign == '-') {
      piece = strip_back(piece);
    } else if (sign != '+' && kind != '{') {
      const std::size_t newline = piece.rfind('\n');
      const std::size_t line = newline == std::string_view::npos ? 0 : newline + 1;
      const std::string_view indent = piece.substr(line);
      if ((line > 0 || line_starting_) && strip_front(indent).empty()) piece = piece.substr(0, line);
    }
    if (!piece.empty()) add(Token::Kind::data, std::string(piece));
    pass(open);
  }

  /// Returns the position after "-%}", "+%}" or "%}" at `at` and the blanks that it strips. Returns npos if there is
  /// none.
  std::size_t block_close(std::size_t at, std::string_view mark) const {
    const std::string_view text = rest_.substr(at);
    if (text.starts_with('-') && text.substr(1).starts_with(mark)) return after_space(at + 1 + mark.size());
    if (text.starts_with('+') && text.substr(1).starts_with(mark)) return at + 1 + mark.size();
    if (!text.starts_with(mark)) return std::string_view::npos;
    const std::size_t end = at + mark.size();
    return end < rest_.size() && rest_[end] == '\n' ? end + 1 : end;
  }

  void comment(std::size_t body) {
    for (std::size_t at = body; at < rest_.size(); ++at)
      if (const std::size_t end = block_close(at, "#}"); end != std::string_view::npos) return pass(end);
    fail("Missing end of comment tag");
  }

  /// {% raw %}...{% endraw %}; false for another block.
  bool raw(std::size_t body) {
    std::size_t at = after_space(body);
    if (!rest_.substr(at).starts_with("raw")) return false;
    at = after_space(at + 3);
    const bool strips = rest_.substr(at).starts_with("-%}");
    if (!strips && !rest_.substr(at).starts_with("%}")) return false;
    pass(strips ? after_space(at + 3) : at + 2);
    for (std::size_t open = rest_.find("{%", at_); open != std::string_view::npos; open = rest_.find("{%", open + 1)) {
      const char sign = open + 2 < rest_.size() ? rest_[open + 2] : ' ';
      std::size_t word = after_space(open + (sign == '-' || sign == '+' ? 3 : 2));
      if (!rest_.substr(word).starts_with("endraw")) continue;
      const std::size_t end = block_close(after_space(word + 6), "%}");
      if (end == std::string_view::npos) continue;
      text_before(open, '%', sign);
      pass(end);
      return true;
    }
    fail("Missing end of raw directive");
  }

  void tag(bool variable) {
    std::string open_brackets;
    const std::string_view mark = variable ? "}}" : "%}";
    while (at_ < rest_.size()) {
      if (open_brackets.empty()) {
        std::size_t end = std::string_view::npos;
        if (!variable)
          end = block_close(at_, mark);
        else if (here("-}}"))
          end = after_space(at_ + 3);
        else if (here("}}"))
          end = at_ + 2;
        if (end != std::string_view::npos) {
          add(variable ? Token::Kind::variable_end : Token::Kind::block_end, "");
          return pass(end);
        }
      }
      if (const std::size_t next = after_space(at_); next > at_)
        pass(next);
      else
        word(open_brackets);
    }
  }

  void word(std::string& open_brackets) {
    const char c = rest_[at_];
    if (is_digit(c)) return number();
    if (is_name_start(c)) {
      std::size_t end = at_;
      while (end < rest_.size() && is_name_part(rest_[end])) ++end;
      add(Token::Kind::name, std::string(rest_.substr(at_, end - at_)));
      return pass(end);
    }
    if (c == '\'' || c == '"') return string(c);
    symbol(open_brackets);
  }

  void string(char quote) {
    std::size_t end = at_ + 1;
    while (end < rest_.size() && rest_[end] != quote) end += rest_[end] == '\\' ? 2 : 1;
    if (end >= rest_.size()) fail(text("unexpected char ", quote, ": a string that does not end"));
    try {
      add(Token::Kind::string, unescape(rest_.substr(at_ + 1, end - at_ - 1)));
    } catch (const TemplateError& error) {
      throw TemplateError(error.kind(), error.message(), line_);
    }
    pass(end + 1);
  }

  /// End of digits with single underscores between them.
  std::size_t digits(std::size_t at, bool (*digit)(char)) const {
    while (at < rest_.size() &&
           (digit(rest_[at]) || (rest_[at] == '_' && at + 1 < rest_.size() && digit(rest_[at + 1]))))
      ++at;
    return at;
  }

  void number() {
    std::size_t end = digits(at_, is_digit);
    const bool after_dot = at_ > 0 && rest_[at_ - 1] == '.';
    bool real = false;
    if (!after_dot) {
      const auto digit_at = [&](std::size_t at) { return at < rest_.size() && is_digit(rest_[at]); };
      if (end < rest_.size() && rest_[end] == '.' && digit_at(end + 1)) {
        end = digits(end + 1, is_digit);
        real = true;
      }
      if (end < rest_.size() && (rest_[end] == 'e' || rest_[end] == 'E')) {
        const std::size_t power =
            end + 1 < rest_.size() && (rest_[end + 1] == '-' || rest_[end + 1] == '+') ? end + 2 : end + 1;
        if (digit_at(power)) {
          end = digits(power, is_digit);
          real = true;
        }
      }
    }
    if (!real && rest_[at_] == '0') end = integer_from_zero();
    std::string number(rest_.substr(at_, end - at_));
    std::erase(number, '_');
    add(real ? Token::Kind::real : Token::Kind::integer, std::move(number));
    pass(end);
  }

  std::size_t integer_from_zero() const {
    const char base = at_ + 1 < rest_.size() ? static_cast<char>(rest_[at_ + 1] | 0x20) : ' ';
    bool (*digit)(char) = nullptr;
    if (base == 'x') digit = [](char c) { return is_digit(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f'); };
    if (base == 'o') digit = [](char c) { return c >= '0' && c <= '7'; };
    if (base == 'b') digit = [](char c) { return c == '0' || c == '1'; };
    if (digit)
      if (const std::size_t end = digits(at_ + 2, digit); end > at_ + 2) return end;
    return digits(at_, [](char c) { return c == '0'; });
  }

  void symbol(std::string& open_brackets) {
    static constexpr std::array<std::string_view, 6> pairs{"//", "**", "==", "!=", ">=", "<="};
    std::string_view found;
    for (const std::string_view pair : pairs)
      if (here(pair)) found = pair;
    if (found.empty() && std::string_view("+-/*%~[](){}><=.:|,;").find(rest_[at_]) != std::string_view::npos)
      found = rest_.substr(at_, 1);
    if (found.empty()) fail(text("unexpected char '", rest_.substr(at_, 1), "'"));
    static constexpr std::string_view opening = "([{", closing = ")]}";
    if (const std::size_t kind = opening.find(found); kind != std::string_view::npos) open_brackets += closing[kind];
    if (closing.find(found) != std::string_view::npos) {
      if (open_brackets.empty()) fail(text("unexpected '", found, "'"));
      if (open_brackets.back() != found[0])
        fail(text("unexpected '", found, "', expected '", open_brackets.substr(open_brackets.size() - 1), "'"));
      open_brackets.pop_back();
    }
    add(Token::Kind::symbol, std::string(found));
    pass(at_ + found.size());
  }

  std::string source_;
  std::string_view rest_;
  std::size_t at_ = 0;
  int line_ = 1;
  bool line_starting_ = true;
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokenize(std::string_view source) { return Lexer(with_plain_lines(source)).run(); }

}  // namespace zero::jinja
