#include <cmath>

#include "base/log.h"
#include "models/text/jinja/error.h"
#include "models/text/jinja/library/formatting.h"
#include "models/text/jinja/library/library.h"
#include "models/text/jinja/values/compare.h"
#include "models/text/jinja/values/show.h"
#include "models/text/jinja/values/text_builder.h"

namespace zero::jinja {
namespace {

[[noreturn]] void refuse_overflow(std::string_view symbol) {
  refuse(text("the result of ", symbol, " does not fit into 64 bits"));
}

[[noreturn]] void fail_operands(std::string_view symbol, const Value& left, const Value& right) {
  if (left.is(Kind::undefined)) fail_undefined(left);
  if (right.is(Kind::undefined)) fail_undefined(right);
  if (symbol == "+" && left.is(Kind::string))
    fail(text("can only concatenate str (not \"", type_name(right), "\") to str"));
  fail(text("unsupported operand type(s) for ", symbol, ": '", type_name(left), "' and '", type_name(right), "'"));
}

Value power(std::int64_t base, std::int64_t exponent) {
  if (exponent < 0) {
    if (base == 0) fail("0.0 cannot be raised to a negative power");
    return Value::real(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  }
  std::int64_t result = 1;
  while (exponent > 0) {
    if (exponent % 2 == 1 && __builtin_mul_overflow(result, base, &result)) refuse_overflow("**");
    exponent /= 2;
    if (exponent > 0 && __builtin_mul_overflow(base, base, &base)) refuse_overflow("**");
  }
  return Value::integer(result);
}

Value divide(char symbol, std::int64_t a, std::int64_t b) {
  if (b == 0) fail(symbol == '/' ? "division by zero" : "integer division or modulo by zero");
  if (b == -1) {  // the smallest number has no opposite
    if (symbol == '%') return Value::integer(0);
    if (__builtin_sub_overflow(std::int64_t{0}, a, &a)) refuse_overflow("//");
    return Value::integer(a);
  }
  const std::int64_t quotient = a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
  return Value::integer(symbol == '%' ? a - quotient * b : quotient);
}

Value whole(std::string_view symbol, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  if (symbol == "**") return power(a, b);
  if (symbol == "/") {
    if (b == 0) fail("division by zero");
    return Value::real(static_cast<double>(a) / static_cast<double>(b));
  }
  if (symbol == "//" || symbol == "%") return divide(symbol.back(), a, b);
  const bool overflow = symbol == "+"   ? __builtin_add_overflow(a, b, &result)
                        : symbol == "-" ? __builtin_sub_overflow(a, b, &result)
                                        : __builtin_mul_overflow(a, b, &result);
  if (overflow) refuse_overflow(symbol);
  return Value::integer(result);
}

double modulo(double a, double b) {
  double rest = std::fmod(a, b);
  if (rest == 0) return std::copysign(0.0, b);
  if ((rest < 0) != (b < 0)) rest += b;
  return rest;
}

Value real(std::string_view symbol, double a, double b) {
  if (symbol == "+") return Value::real(a + b);
  if (symbol == "-") return Value::real(a - b);
  if (symbol == "*") return Value::real(a * b);
  if (symbol == "**") {
    if (a == 0 && b < 0) fail("0.0 cannot be raised to a negative power");
    if (a < 0 && b != std::floor(b)) refuse("a power that is a complex number");
    const double result = std::pow(a, b);
    if (std::isinf(result) && !std::isinf(a) && !std::isinf(b)) fail("numerical result out of range");
    return Value::real(result);
  }
  if (b == 0) fail("float division by zero");
  if (symbol == "/") return Value::real(a / b);
  const double rest = modulo(a, b);
  if (symbol == "%") return Value::real(rest);
  const double quotient = (a - rest) / b;
  return Value::real(std::isfinite(quotient) ? std::round(quotient) : quotient);
}

Value repeated(Runtime& runtime, const Value& sequence, std::int64_t times) {
  if (sequence.is(Kind::string)) {
    TextBuilder text(runtime.budget);
    return text.add(sequence.utf8(), times).value(sequence.text().markup);
  }
  std::vector<Value> items;
  for (std::int64_t i = 0; i < times && !sequence.items().empty(); ++i) {
    runtime.budget->step(static_cast<std::int64_t>(sequence.items().size()));
    items.insert(items.end(), sequence.items().begin(), sequence.items().end());
  }
  return sequence.is(Kind::list) ? make_list(runtime.budget, std::move(items))
                                 : make_tuple(runtime.budget, std::move(items));
}

bool repeats(const Value& value) { return value.is(Kind::string) || value.is(Kind::list) || value.is(Kind::tuple); }

Value joined(Runtime& runtime, const Value& left, const Value& right) {
  if (left.is(Kind::string)) {
    const bool markup = left.text().markup || right.text().markup;
    const auto piece = [&](const Value& part) {
      return markup && !part.text().markup ? escape_html(part.utf8()) : part.utf8();
    };
    TextBuilder text(runtime.budget);
    text += markup ? piece(left) : left.utf8();
    text += markup ? piece(right) : right.utf8();
    return text.value(markup);
  }
  runtime.budget->step(static_cast<std::int64_t>(left.items().size() + right.items().size()));
  std::vector<Value> items = left.items();
  items.insert(items.end(), right.items().begin(), right.items().end());
  return left.is(Kind::list) ? make_list(runtime.budget, std::move(items))
                             : make_tuple(runtime.budget, std::move(items));
}

}  // namespace

Value binary(Runtime& runtime, std::string_view symbol, const Value& left, const Value& right) {
  if (left.is_whole() && right.is_whole()) return whole(symbol, left.integer(), right.integer());
  if (left.is_number() && right.is_number()) return real(symbol, left.real(), right.real());
  if (symbol == "+" && left.kind() == right.kind() && repeats(left)) return joined(runtime, left, right);
  if (symbol == "*" && repeats(left) && right.is_whole()) return repeated(runtime, left, right.integer());
  if (symbol == "*" && repeats(right) && left.is_whole()) return repeated(runtime, right, left.integer());
  if (symbol == "%" && left.is(Kind::string) && !right.is(Kind::undefined)) return percent_format(runtime, left, right);
  fail_operands(symbol, left, right);
}

Value negated(const Value& value) {
  if (value.is(Kind::undefined)) fail_undefined(value);
  if (value.is(Kind::real)) return Value::real(-value.real());
  if (!value.is_whole()) fail(text("bad operand type for unary -: '", type_name(value), "'"));
  std::int64_t result = 0;
  if (__builtin_sub_overflow(std::int64_t{0}, value.integer(), &result)) refuse_overflow("-");
  return Value::integer(result);
}

}  // namespace zero::jinja
