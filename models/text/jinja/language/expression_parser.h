#pragma once
// Expressions, with jinja2's precedence. No LibTorch.
#include "models/text/jinja/language/token_stream.h"

namespace zero::jinja {

struct TupleRules {
  bool conditional = true;     // x if y else z may stand in it
  std::string_view stop = {};  // a name that ends it
  bool brackets = false;       // may be empty
};

Expression* parse_expression(TokenStream& tokens, bool conditional = true);

/// One expression, or a tuple without brackets.
Expression* parse_tuple(TokenStream& tokens, const TupleRules& rules = {});

/// The filters behind `subject`, which is nullptr for those of a block; `inside`: the first | has been read.
Expression* parse_filters(TokenStream& tokens, Expression* subject, bool inside = false);

/// Whether the token at hand ends a tuple without brackets.
bool ends_tuple(const TokenStream& tokens, std::string_view stop);

/// The target of an assignment: names, tuples of them, and with `spaces` attributes of namespaces.
Target parse_target(TokenStream& tokens, std::string_view stop, bool spaces);
Target parse_name_target(TokenStream& tokens);

}  // namespace zero::jinja
