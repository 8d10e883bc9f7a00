#include "models/text/jinja/library/formatting.h"

#include <cmath>

#include "base/log.h"
#include "models/text/jinja/error.h"
#include "models/text/jinja/library/number_format.h"
#include "models/text/jinja/values/compare.h"
#include "models/text/jinja/values/show.h"
#include "models/text/jinja/values/text_builder.h"

namespace zero::jinja {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// The values of one `format % values`, taken in order.
class PercentValues {
 public:
  explicit PercentValues(const Value& values) : values_(values), tuple_(values.is(Kind::tuple)) {}

  const Value& next() {
    const std::size_t count = tuple_ ? values_.items().size() : 1;
    if (used_ == count) fail("not enough arguments for format string");
    return tuple_ ? values_.items()[used_++] : (++used_, values_);
  }
  const Value& named(std::string_view key) {
    if (!values_.is(Kind::dict)) fail("format requires a mapping");
    by_name_ = true;
    if (const Value* found = values_.dict().find(key)) return *found;
    fail(text("KeyError: '", key, "'"));
  }
  void finish() const {
    const std::size_t count = tuple_ ? values_.items().size() : 1;
    if (used_ < count && !by_name_ && !values_.is(Kind::dict) && !values_.is(Kind::list))
      fail("not all arguments converted during string formatting");
    if (used_ < count && values_.is(Kind::list)) return;
  }

 private:
  const Value& values_;
  bool tuple_, by_name_ = false;
  std::size_t used_ = 0;
};

class PercentFormat {
 public:
  PercentFormat(Runtime& runtime, const std::string& format, const Value& values)
      : format_(format), values_(values), out_(runtime.budget), budget_(runtime.budget) {}

  Value run(bool markup) {
    while (at_ < format_.size()) {
      const std::size_t sign = std::min(format_.find('%', at_), format_.size());
      out_ += std::string_view(format_).substr(at_, sign - at_);
      at_ = sign;
      if (at_ < format_.size()) field();
    }
    values_.finish();
    return out_.value(markup);
  }

 private:
  char now() const {
    if (at_ >= format_.size()) fail("incomplete format");
    return format_[at_];
  }

  std::int64_t number() {
    if (now() == '*') {
      ++at_;
      const Value& value = values_.next();
      if (!value.is_whole()) fail("* wants int");
      return value.integer();
    }
    std::int64_t result = 0;
    for (; is_digit(now()); ++at_)
      if (__builtin_mul_overflow(result, 10, &result) || __builtin_add_overflow(result, now() - '0', &result))
        fail("width too big");
    return result;
  }

  void field() {
    ++at_;
    const Value* value = nullptr;
    if (now() == '(') {
      const std::size_t end = format_.find(')', at_);
      if (end == std::string::npos) fail("incomplete format key");
      value = &values_.named(std::string_view(format_).substr(at_ + 1, end - at_ - 1));
      at_ = end + 1;
    }
    FormatSpec spec;
    bool zero = false, left = false;
    for (;; ++at_) {
      const char flag = now();
      if (flag == '-')
        left = true;
      else if (flag == '0')
        zero = true;
      else if (flag == '#')
        spec.alternate = true;
      else if (flag == '+' || (flag == ' ' && spec.sign != '+'))
        spec.sign = flag;
      else if (flag != ' ')
        break;
    }
    spec.width = number();
    if (spec.width < 0) {
      left = true;
      spec.width = spec.width == INT64_MIN ? 0 : -spec.width;
    }
    if (now() == '.') {
      ++at_;
      spec.precision = std::max<std::int64_t>(number(), 0);
    }
    while (now() == 'l' || now() == 'h' || now() == 'L') ++at_;
    spec.type = now();
    ++at_;
    if (spec.type == '%') {
      out_ += '%';
      return;
    }
    spec.align = left ? '<' : zero ? '=' : '>';
    if (zero && !left) spec.fill = "0";
    out_ += convert(value ? *value : values_.next(), spec);
  }

  std::string convert(const Value& value, FormatSpec spec) {
    const char type = spec.type;
    if (type == 's' || type == 'r' || type == 'a') {
      if (type == 'a') refuse("%a is not done here");
      spec.type = 0;
      if (spec.align == '=') spec.align = '>';
      spec.fill = " ";
      return formatted(budget_, make_string(budget_, type == 's' ? to_text(value) : repr(value)), spec);
    }
    if (value.is(Kind::undefined)) fail_undefined(value);
    if (type == 'c' && value.is(Kind::string)) {
      if (value.text().length != 1) fail("%c requires int or char");
      return padded(budget_, "", value.utf8(), spec);
    }
    if (!value.is_number())
      fail(text("%", std::string(1, type), " format: a real number is required, not ", type_name(value)));
    if (type == 'd' || type == 'i' || type == 'u') return whole(value, spec);
    if (type == 'x' || type == 'X' || type == 'o' || type == 'c') {
      if (!value.is_whole()) fail(text("%", std::string(1, type), " format: an integer is required, not float"));
      return type == 'c' ? formatted(budget_, Value::integer(value.integer()), spec) : whole(value, spec);
    }
    if (std::string_view("eEfFgG").find(type) == std::string_view::npos)
      fail(text("unsupported format character '", std::string(1, type), "'"));
    return formatted(budget_, Value::real(value.real()), spec);
  }

  /// Formats integers, for which the precision is the minimum number of digits.
  std::string whole(const Value& value, FormatSpec spec) {
    std::int64_t number = value.integer();
    if (value.is(Kind::real)) {
      if (!(std::abs(value.real()) < 9.2e18)) refuse("a float beyond 64 bits as an integer");
      number = static_cast<std::int64_t>(value.real());
    }
    if (spec.type == 'i' || spec.type == 'u') spec.type = 'd';
    if (spec.precision < 0) return formatted(budget_, Value::integer(number), spec);
    FormatSpec inner;
    inner.type = spec.type;
    inner.width = spec.precision + (number < 0 ? 1 : 0);
    inner.fill = "0";
    inner.align = '=';
    spec.type = 0;
    spec.precision = -1;
    return padded(budget_, "", formatted(budget_, Value::integer(number), inner), spec);
  }

  const std::string& format_;
  std::size_t at_ = 0;
  PercentValues values_;
  TextBuilder out_;
  Budget* budget_;
};

class BraceFormat {
 public:
  BraceFormat(Runtime& runtime, const Arguments& arguments) : runtime_(runtime), arguments_(arguments) {}

  std::string run(std::string_view format, int depth) {
    if (depth > 2) fail("Max string recursion exceeded");
    TextBuilder out(runtime_.budget);
    for (std::size_t at = 0; at < format.size();) {
      const char c = format[at];
      if (c != '{' && c != '}') {
        out += c;
        ++at;
      } else if (at + 1 < format.size() && format[at + 1] == c) {
        out += c;
        at += 2;
      } else if (c == '}') {
        fail("Single '}' encountered in format string");
      } else {
        const std::size_t end = close(format, at);
        out += field(format.substr(at + 1, end - at - 1), depth);
        at = end + 1;
      }
    }
    return out.take();
  }

 private:
  static std::size_t close(std::string_view format, std::size_t at) {
    int open = 0;
    for (; at < format.size(); ++at) {
      if (format[at] == '{') ++open;
      if (format[at] == '}' && --open == 0) return at;
    }
    fail("expected '}' before end of string");
  }

  std::string field(std::string_view field, int depth) {
    const std::size_t colon = field.find(':'), bang = field.substr(0, colon).find('!');
    const std::string_view name = field.substr(0, std::min(bang, colon));
    const std::string spec = colon == std::string_view::npos ? "" : run(field.substr(colon + 1), depth + 1);
    Value value = get(name);
    if (bang != std::string_view::npos) {
      const std::string_view conversion =
          field.substr(bang + 1, colon == std::string_view::npos ? colon : colon - bang - 1);
      if (conversion != "s" && conversion != "r") fail(text("Unknown conversion specifier '", conversion, "'"));
      value = make_string(runtime_.budget, conversion == "s" ? to_text(value) : repr(value));
    }
    return spec.empty() ? to_text(value) : formatted(runtime_.budget, value, parse_format_spec(spec));
  }

  Value first(std::string_view name) {
    if (name.empty()) return positional(automatic_++);
    if (name.find_first_not_of("0123456789") == std::string_view::npos && name.size() < 10)
      return positional(static_cast<std::size_t>(std::stoul(std::string(name))));
    for (const auto& [key, value] : arguments_.named)
      if (key == name) return value;
    fail(text("KeyError: '", name, "'"));
  }

  Value positional(std::size_t place) const {
    if (place >= arguments_.positional.size())
      fail(text("Replacement index ", place, " out of range for positional args tuple"));
    return arguments_.positional[place];
  }

  Value get(std::string_view path) {
    const std::size_t end = std::min(path.find_first_of(".["), path.size());
    Value value = first(path.substr(0, end));
    for (std::string_view rest = path.substr(end); !rest.empty();) {
      if (rest[0] == '.') {
        const std::size_t stop = std::min(rest.find_first_of(".[", 1), rest.size());
        value = attribute_of(runtime_, value, rest.substr(1, stop - 1));
        rest.remove_prefix(stop);
        continue;
      }
      const std::size_t stop = rest.find(']');
      if (rest[0] != '[' || stop == std::string_view::npos) fail("Missing ']' in format string");
      const std::string key(rest.substr(1, stop - 1));
      const bool number = !key.empty() && key.size() < 10 && key.find_first_not_of("0123456789") == std::string::npos;
      value = item_of(runtime_, value, number ? Value::integer(std::stol(key)) : make_string(runtime_.budget, key));
      rest.remove_prefix(stop + 1);
    }
    return value;
  }

  Runtime& runtime_;
  const Arguments& arguments_;
  std::size_t automatic_ = 0;
};

}  // namespace

Value percent_format(Runtime& runtime, const Value& format, const Value& values) {
  return PercentFormat(runtime, format.utf8(), values).run(format.text().markup);
}

Value str_format(Runtime& runtime, const Value& format, const Arguments& arguments) {
  return make_string(runtime.budget, BraceFormat(runtime, arguments).run(format.utf8(), 0), format.text().markup);
}

}  // namespace zero::jinja
