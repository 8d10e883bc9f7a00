#pragma once
// The tokens of a template. They equal those of jinja2 3.1's lexer with trim_blocks and lstrip_blocks, which
// transformers sets. No LibTorch.
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
  std::string text;  // of strings with escapes resolved; of numbers without underscores
};

/// Throws TemplateError of kind syntax, with the line. `source` is valid UTF-8.
std::vector<Token> tokenize(std::string_view source);

}  // namespace zero::jinja
