#pragma once
// str(), repr() and json.dumps() of values, as Python writes them. Does not include LibTorch.
#include <string>
#include <string_view>

#include "models/text/jinja/values/value.h"

namespace zero::jinja {

/// Fails for generators and functions, whose text in Python contains an address.
std::string to_text(const Value& value);
std::string repr(const Value& value);
std::string repr(std::string_view string);
std::string show_real(double value);  // repr(float): the shortest digits that read back the same

struct JsonStyle {
  bool ascii = false;
  bool sort = false;
  bool indented = false;
  std::string indent = {};
  std::string item = ", ", key = ": ";
};

/// json.dumps(). Fails for values that json.dumps() does not accept.
std::string to_json(const Value& value, const JsonStyle& style);

/// markupsafe.escape(): & < > ' " become character references.
std::string escape_html(std::string_view text);

}  // namespace zero::jinja
