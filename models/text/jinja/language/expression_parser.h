#pragma once
// Parses expressions, with jinja2's precedence. No LibTorch.
#include "models/text/jinja/language/token_stream.h"

namespace zero::jinja {

struct TupleRules {
  bool conditional = true;     // x if y else z is allowed
  std::string_view stop = {};  // a name that ends it
  bool brackets = false;       // may be empty
};

Expression* parse_expression(TokenStream& tokens, bool conditional = true);

/// Parses one expression, or a tuple without brackets.
Expression* parse_tuple(TokenStream& tokens, const TupleRules& rules = {});

/// Parses the filters after `subject`, which is nullptr for those of a block. `inside`: the first | has been read.
Expression* parse_filters(TokenStream& tokens, Expression* subject, bool inside = false);

/// True if the current token ends a tuple without brackets.
bool ends_tuple(const TokenStream& tokens, std::string_view stop);

/// Parses the target of an assignment: names, tuples of them, and with `spaces` attributes of namespaces.
Target parse_target(TokenStream& tokens, std::string_view stop, bool spaces);
Target parse_name_target(TokenStream& tokens);

}  // namespace zero::jinja
