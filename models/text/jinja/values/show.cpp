#include "models/text/jinja/values/show.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/log.h"
#include "base/utf8.h"
#include "models/text/jinja/error.h"
#include "models/text/jinja/library/library.h"
#include "models/text/jinja/values/characters.h"
#include "models/text/jinja/values/compare.h"
#include "models/text/jinja/values/iterate.h"
#include "models/text/jinja/values/loop.h"
#include "models/text/jinja/values/text_builder.h"

namespace zero::jinja {
namespace {

constexpr int max_shown_depth = max_nesting + 50;  // namespaces hold what they were not made of, even themselves

void append_hexadecimal(char32_t code, int digits, std::string& out) {
  for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4) out += "0123456789abcdef"[(code >> shift) & 15];
}

/// Appends the repr of values to one text.
class Repr {
 public:
  explicit Repr(Budget* budget) : out_(budget) {}

  std::string take() { return out_.take(); }

  void add(const Value& value) {
    if (value.object() && value.object()->budget) value.object()->budget->step();
    if (++depth_ > max_shown_depth)
      throw TemplateError(TemplateError::Kind::bound,
                          text("a value to be written is nested deeper than ", max_shown_depth, " levels"));
    add_any(value);
    --depth_;
  }

 private:
  void add_any(const Value& value) {
    switch (value.kind()) {
      case Kind::undefined:
        out_ += "Undefined";
        return;
      case Kind::none:
        out_ += "None";
        return;
      case Kind::boolean:
        out_ += value.boolean() ? "True" : "False";
        return;
      case Kind::integer:
        out_ += std::to_string(value.integer());
        return;
      case Kind::real:
        out_ += show_real(value.real());
        return;
      case Kind::string:
        out_ += value.text().markup ? "Markup(" + repr(value.utf8()) + ")" : repr(value.utf8());
        return;
      case Kind::list:
        return add_items("[", value, "]");
      case Kind::tuple:
        return add_items("(", value, value.items().size() == 1 ? ",)" : ")");
      case Kind::range: {
        const auto& range = value.as<Sequence>();
        out_ += "range(" + std::to_string(range.start) + ", " + std::to_string(range.stop);
        out_ += range.step == 1 ? ")" : ", " + std::to_string(range.step) + ")";
        return;
      }
      case Kind::dict:
        return add_dict(value.dict());
      case Kind::view:
        return add_view(value);
      case Kind::name_space:
        return add_namespace(value.as<Namespace>());
      case Kind::loop: {
        auto& loop = value.as<Loop>();
        out_ += "<LoopContext " + std::to_string(loop.index0 + 1) + "/" + std::to_string(loop.length()) + ">";
        return;
      }
      case Kind::callable: {
        const std::string shown = value.as<Callable>().shown();
        if (shown.starts_with("<Macro")) {
          out_ += shown;
          return;
        }
        [[fallthrough]];
      }
      default:
        refuse(text(
            "a ", type_name(value),
            " is written out, whose text would be an address in memory: is |list missing, or a pair of brackets?"));
    }
  }

  void add_items(const char* open, const Value& value, const char* close) {
    out_ += open;
    bool first = true;
    for (const Value& item : value.items()) {
      if (!first) out_ += ", ";
      first = false;
      add(item);
    }
    out_ += close;
  }

  void add_dict(const Dict& dict) {
    out_ += '{';
    bool first = true;
    for (const auto& [key, value] : dict.entries) {
      if (!first) out_ += ", ";
      first = false;
      add(key);
      out_ += ": ";
      add(value);
    }
    out_ += '}';
  }

  void add_view(const Value& view) {
    out_ += text(type_name(view), "(");
    add_items("[", make_list(view.object()->budget, list_of(view)), "]");
    out_ += ')';
  }

  void add_namespace(Namespace& space) {
    out_ += "<Namespace {";
    bool first = true;
    for (const auto& [name, value] : space.attributes) {
      if (!first) out_ += ", ";
      first = false;
      out_ += repr(name) + ": ";
      add(value);
    }
    out_ += "}>";
  }

  TextBuilder out_;
  int depth_ = 0;
};

}  // namespace

std::string show_real(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[64];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific).ptr;
  const std::string all(buffer, end);
  const std::size_t e = all.find('e');
  const int exponent = std::stoi(all.substr(e + 1));
  std::string digits = all.substr(0, e);
  const bool negative = digits[0] == '-';
  std::erase_if(digits, [](char c) { return c == '-' || c == '.'; });
  std::string result;
  const int count = static_cast<int>(digits.size());
  if (exponent < -4 || exponent >= 16) {
    result = digits.substr(0, 1) + (count > 1 ? "." + digits.substr(1) : "") + "e" + (exponent < 0 ? "-" : "+");
    const std::string power = std::to_string(std::abs(exponent));
    result += power.size() < 2 ? "0" + power : power;
  } else if (exponent < 0) {
    result = "0." + std::string(static_cast<std::size_t>(-exponent - 1), '0') + digits;
  } else if (count <= exponent + 1) {
    result = digits + std::string(static_cast<std::size_t>(exponent + 1 - count), '0') + ".0";
  } else {
    result = digits.substr(0, static_cast<std::size_t>(exponent) + 1) + "." +
             digits.substr(static_cast<std::size_t>(exponent) + 1);
  }
  return negative ? "-" + result : result;
}

std::string repr(std::string_view string) {
  const char quote =
      string.find('\'') != std::string_view::npos && string.find('"') == std::string_view::npos ? '"' : '\'';
  std::string out(1, quote);
  while (!string.empty()) {
    const std::string_view character = first_character(string);
    const char32_t code = code_point(character);
    string.remove_prefix(character.size());
    if (code == static_cast<unsigned char>(quote) || code == '\\') {
      out += '\\';
      out += character;
    } else if (code == '\n') {
      out += "\\n";
    } else if (code == '\r') {
      out += "\\r";
    } else if (code == '\t') {
      out += "\\t";
    } else if (is_printable(code)) {
      out += character;
    } else {
      out += code < 0x100 ? "\\x" : code < 0x10000 ? "\\u" : "\\U";
      append_hexadecimal(code, code < 0x100 ? 2 : code < 0x10000 ? 4 : 8, out);
    }
  }
  return out += quote;
}

std::string repr(const Value& value) {
  Repr writer(value.object() ? value.object()->budget : nullptr);
  writer.add(value);
  return writer.take();
}

std::string to_text(const Value& value) {
  if (value.is(Kind::string)) return value.utf8();
  if (value.is(Kind::undefined)) return "";
  return repr(value);
}

std::string escape_html(std::string_view text) {
  std::string out;
  for (const char c : text) switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '\'':
        out += "&#39;";
        break;
      case '"':
        out += "&#34;";
        break;
      default:
        out += c;
    }
  return out;
}

}  // namespace zero::jinja
