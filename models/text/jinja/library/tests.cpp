#include <algorithm>
#include <utility>

#include "base/log.h"
#include "models/text/jinja/error.h"
#include "models/text/jinja/library/arguments.h"
#include "models/text/jinja/library/library.h"
#include "models/text/jinja/library/methods.h"
#include "models/text/jinja/values/compare.h"
#include "models/text/jinja/values/iterate.h"
#include "models/text/jinja/values/show.h"

namespace zero::jinja {
namespace {

void take_none(const Arguments& arguments) { const Given none("the test", arguments, {}); }

const Value& one(const Arguments& arguments) {
  const Given given("the test", arguments, {"other"}, 1);
  return *given[0];
}

template <Kind Wanted>
bool is_kind(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  take_none(arguments);
  return subject.is(Wanted);
}

bool is_defined(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  take_none(arguments);
  return !subject.is(Kind::undefined);
}

template <bool Wanted>
bool is_truth(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  take_none(arguments);
  return subject.is(Kind::boolean) && subject.boolean() == Wanted;
}

bool is_number(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  take_none(arguments);
  return subject.is_number();
}

bool is_sequence(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  take_none(arguments);
  return subject.is(Kind::undefined) || subject.is(Kind::string) || subject.is(Kind::dict) || subject.is_sequence();
}

bool is_iterable_test(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  take_none(arguments);
  return is_iterable(subject);
}

bool is_callable(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  take_none(arguments);
  return subject.is(Kind::callable) || subject.is(Kind::undefined) || subject.is(Kind::loop);
}

bool is_escaped(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  take_none(arguments);
  return subject.is(Kind::string) && subject.text().markup;
}

bool is_same(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Value& other = one(arguments);
  if (subject.kind() != other.kind()) return false;
  if (subject.is(Kind::real)) refuse("sameas of floats is not done here");
  return subject.object() || other.object() ? subject.object() == other.object() : equal(subject, other);
}

bool is_in(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  return contains(one(arguments), subject);
}
bool is_equal(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  return equal(subject, one(arguments));
}
bool is_not_equal(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  return !equal(subject, one(arguments));
}

bool compare(const Value& a, const Value& b, const char* symbol, bool (*holds)(int)) {
  bool unordered = false;
  const int ordered = order(a, b, symbol, unordered);
  return !unordered && holds(ordered);
}

bool is_less(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  return compare(subject, one(arguments), "<", [](int order) { return order < 0; });
}
bool is_at_most(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  return compare(subject, one(arguments), "<=", [](int order) { return order <= 0; });
}
bool is_greater(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  return compare(subject, one(arguments), ">", [](int order) { return order > 0; });
}
bool is_at_least(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  return compare(subject, one(arguments), ">=", [](int order) { return order >= 0; });
}

bool leaves(Runtime& runtime, const Value& subject, std::int64_t divisor, std::int64_t rest) {
  return equal(binary(runtime, "%", subject, Value::integer(divisor)), Value::integer(rest));
}

bool is_odd(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  take_none(arguments);
  return leaves(runtime, subject, 2, 1);
}
bool is_even(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  take_none(arguments);
  return leaves(runtime, subject, 2, 0);
}
bool is_divisible(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  const Given given("divisibleby", arguments, {"num"}, 1);
  return equal(binary(runtime, "%", subject, *given[0]), Value::integer(0));
}

template <const char* const* Method>
bool by_method(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  return truth(find_text_method(*Method)(runtime, make_string(runtime.budget, to_text(subject)), arguments));
}
constexpr const char *islower = "islower", *isupper = "isupper";

bool is_filter(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  take_none(arguments);
  return subject.is(Kind::string) && find_filter(subject.utf8());
}
bool is_test(Runtime& runtime, const Value& subject, const Arguments& arguments) {
  take_none(arguments);
  return subject.is(Kind::string) && find_test(subject.utf8());
}

constexpr std::pair<std::string_view, Test> tests[] = {
    {"defined", is_defined},
    {"undefined", is_kind<Kind::undefined>},
    {"none", is_kind<Kind::none>},
    {"boolean", is_kind<Kind::boolean>},
    {"true", is_truth<true>},
    {"false", is_truth<false>},
    {"integer", is_kind<Kind::integer>},
    {"float", is_kind<Kind::real>},
    {"number", is_number},
    {"string", is_kind<Kind::string>},
    {"mapping", is_kind<Kind::dict>},
    {"sequence", is_sequence},
    {"iterable", is_iterable_test},
    {"callable", is_callable},
    {"escaped", is_escaped},
    {"sameas", is_same},
    {"in", is_in},
    {"==", is_equal},
    {"eq", is_equal},
    {"equalto", is_equal},
    {"!=", is_not_equal},
    {"ne", is_not_equal},
    {"<", is_less},
    {"lt", is_less},
    {"lessthan", is_less},
    {"<=", is_at_most},
    {"le", is_at_most},
    {">", is_greater},
    {"gt", is_greater},
    {"greaterthan", is_greater},
    {">=", is_at_least},
    {"ge", is_at_least},
    {"odd", is_odd},
    {"even", is_even},
    {"divisibleby", is_divisible},
    {"lower", by_method<&islower>},
    {"upper", by_method<&isupper>},
    {"filter", is_filter},
    {"test", is_test},
};

}  // namespace

Test find_test(std::string_view name) {
  const auto* found =
      std::find_if(std::begin(tests), std::end(tests), [&](const auto& entry) { return entry.first == name; });
  return found == std::end(tests) ? nullptr : found->second;
}

}  // namespace zero::jinja
