#include <algorithm>
#include <cmath>

#include "base/log.h"
#include "base/utf8.h"
#include "models/text/jinja/error.h"
#include "models/text/jinja/values/compare.h"
#include "models/text/jinja/values/show.h"
#include "models/text/jinja/values/text_builder.h"

namespace zero::jinja {
namespace {

class JsonWriter {
 public:
  JsonWriter(const JsonStyle& style, Budget* budget) : style_(style), out_(budget) {}

  std::string take() { return out_.take(); }

  void add(const Value& value) {
    if (value.object() && value.object()->budget) value.object()->budget->step();
    switch (value.kind()) {
      case Kind::none:
        out_ += "null";
        return;
      case Kind::boolean:
        out_ += value.boolean() ? "true" : "false";
        return;
      case Kind::integer:
        out_ += std::to_string(value.integer());
        return;
      case Kind::real:
        out_ += real(value.real());
        return;
      case Kind::string:
        return add_string(value.utf8());
      case Kind::list:
      case Kind::tuple:
        return add_list(value.items());
      case Kind::dict:
        return add_dict(value.dict());
      default:
        fail(text("Object of type ", type_name(value), " is not JSON serializable"));
    }
  }

 private:
  static std::string real(double value) {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
    return show_real(value);
  }

  void add_escape(char32_t unit) {
    static constexpr char digits[] = "0123456789abcdef";
    out_ += "\\u";
    for (int shift = 12; shift >= 0; shift -= 4) out_ += digits[(unit >> shift) & 15];
  }

  void add_string(std::string_view text) {
    out_ += '"';
    for (; !text.empty(); text.remove_prefix(first_character(text).size())) {
      const std::string_view character = first_character(text);
      const char32_t code = code_point(character);
      static constexpr std::string_view special = "\"\\\n\r\t\f\b", names = "\"\\nrtfb";
      const std::size_t known = code < 0x80 ? special.find(static_cast<char>(code)) : std::string_view::npos;
      if (known != std::string_view::npos) {
        out_ += '\\';
        out_ += names[known];
      } else if (code < 0x20 || (style_.ascii && code >= 0x7f && code < 0x10000)) {
        add_escape(code);
      } else if (style_.ascii && code >= 0x10000) {
        add_escape(0xD800 + ((code - 0x10000) >> 10));
        add_escape(0xDC00 + ((code - 0x10000) & 0x3FF));
      } else {
        out_ += character;
      }
    }
    out_ += '"';
  }

  void new_line() {
    if (!style_.indented) return;
    out_ += '\n';
    for (int i = 0; i < depth_; ++i) out_ += style_.indent;
  }

  template <class Items, class Add>
  void add_all(char open, const Items& items, char close, const Add& add_item) {
    out_ += open;
    if (!items.empty()) {
      ++depth_;
      bool first = true;
      for (const auto& item : items) {
        if (!first) out_ += style_.item;
        first = false;
        new_line();
        add_item(item);
      }
      --depth_;
      new_line();
    }
    out_ += close;
  }

  void add_list(const std::vector<Value>& items) {
    add_all('[', items, ']', [this](const Value& item) { add(item); });
  }

  void add_dict(const Dict& dict) {
    const auto add_entry = [this](const auto& entry) {
      add_key(entry.first);
      out_ += style_.key;
      add(entry.second);
    };
    if (!style_.sort) return add_all('{', dict.entries, '}', add_entry);
    auto entries = dict.entries;
    std::stable_sort(entries.begin(), entries.end(),
                     [](const auto& a, const auto& b) { return less(a.first, b.first); });
    add_all('{', entries, '}', add_entry);
  }

  void add_key(const Value& key) {
    if (key.is(Kind::string)) return add_string(key.utf8());
    if (!key.is_number() && !key.is(Kind::none))
      fail(text("keys must be str, int, float, bool or None, not ", type_name(key)));
    out_ += '"';
    add(key);
    out_ += '"';
  }

  const JsonStyle& style_;
  TextBuilder out_;
  int depth_ = 0;
};

}  // namespace

std::string to_json(const Value& value, const JsonStyle& style) {
  JsonWriter writer(style, value.object() ? value.object()->budget : nullptr);
  writer.add(value);
  return writer.take();
}

}  // namespace zero::jinja
