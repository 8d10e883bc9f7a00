#pragma once
// The tokens of a template. They are those of jinja2 3.1's lexer with trim_blocks and lstrip_blocks, which transformers
// sets. Does not include LibTorch.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace zero::jinja {

struct Token {
  enum class Kind : std::uint8_t {
    data,  // text between tags
    variable_begin,
    variable_end,
    block_begin,
    block_end,
    name,
    string,
    integer,
    real,
    symbol,  // an operator or a bracket
    end,
  };
  Kind kind = Kind::end;
  int line = 1;
  std::string text;  // for strings, escapes are resolved; for numbers, underscores are removed
};

/// Splits a template into tokens. `source` must be valid UTF-8. Throws TemplateError of kind `syntax` with the line.
std::vector<Token> tokenize(std::string_view source);

}  // namespace zero::jinja
