#pragma once
// Parses expressions, with jinja2's precedence. Does not include LibTorch.
#include "models/text/jinja/language/token_stream.h"

namespace zero::jinja {

struct TupleRules {
  bool conditional = true;     // x if y else z is allowed
  std::string_view stop = {};  // a name that ends the tuple
  bool brackets = false;       // may be empty
};

Expression* parse_expression(TokenStream& tokens, bool conditional = true);

/// Parses one expression, or a tuple without brackets.
Expression* parse_tuple(TokenStream& tokens, const TupleRules& rules = {});

/// Parses the filters after `subject`, which is nullptr for a filter block. `inside` says that the first | has been
/// read.
Expression* parse_filters(TokenStream& tokens, Expression* subject, bool inside = false);

/// True if the current token ends a tuple without brackets.
bool ends_tuple(const TokenStream& tokens, std::string_view stop);

/// Parses the target of an assignment: a name, a tuple of names or, if `spaces` is set, an attribute of a namespace.
Target parse_target(TokenStream& tokens, std::string_view stop, bool spaces);
Target parse_name_target(TokenStream& tokens);

}  // namespace zero::jinja
