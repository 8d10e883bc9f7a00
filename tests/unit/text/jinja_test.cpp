#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "models/text/jinja/error.h"
#include "models/text/jinja/template.h"

namespace zero::jinja {
namespace jinja_test {

using ::testing::HasSubstr;
using Json = nlohmann::ordered_json;

std::string render(const std::string& source, const Json& variables = Json::object(), const Limits& limits = {}) {
  return Template(source).render(variables, {.limits = limits, .strftime_now = nullptr}).text;
}

/// The error of a template, or one of kind raised that says so where there is none.
TemplateError error_of(const std::string& source, const Json& variables = Json::object(), const Limits& limits = {}) {
  try {
    return TemplateError(TemplateError::Kind::raised, "no error, but the text " + render(source, variables, limits));
  } catch (const TemplateError& error) {
    return error;
  }
}

// Made by tests/data/make_jinja_cases.py.
TEST(Jinja, GivesWhatJinja2Gives) {
  const std::string path = std::string(ZERO_TEST_DATA) + "/jinja/cases.json";
  const Json file = parse_ordered_json(read_text_file(path), path);
  ASSERT_GT(file["cases"].size(), 500U);
  for (const Json& one : file["cases"]) {
    const auto& source = one[0].get_ref<const std::string&>();
    if (one[1].is_null())
      EXPECT_THROW(render(source, file["variables"]), TemplateError) << source;
    else
      EXPECT_EQ(render(source, file["variables"]), one[1]) << source;
  }
}

TEST(Jinja, ReportsGenerationBlocksInCodePoints) {
  const Rendered rendered =
      Template("é{% generation %}日本{% endgeneration %}x{% generation %}{% endgeneration %}").render(Json::object());
  EXPECT_EQ(rendered.text, "é日本x");
  EXPECT_EQ(rendered.generated, (std::vector<Rendered::Span>{{1, 3}, {4, 4}}));
  // inside a macro a block counts from what the template had written before, as transformers does
  const Rendered inner =
      Template("ab{% macro m() %}cd{% generation %}e{% endgeneration %}{% endmacro %}{{ m() }}").render(Json::object());
  EXPECT_EQ(inner.text, "abcde");
  EXPECT_EQ(inner.generated, (std::vector<Rendered::Span>{{2, 3}}));
  EXPECT_FALSE(inner.generated_in_place);
  const char* own = "{% macro m() %}{% generation %}e{% endgeneration %}d{% endmacro %}{{ m() }}";
  EXPECT_TRUE(rendered.generated_in_place && Template(own).render(Json::object()).generated_in_place);
}

TEST(Jinja, DistinguishesARefusalFromAFailureWithTheLine) {
  const TemplateError raised = error_of("a\n{% if true %}\n{{ raise_exception('no ' ~ 1) }}{% endif %}");
  EXPECT_EQ(raised.kind(), TemplateError::Kind::raised);
  EXPECT_EQ(raised.message(), "no 1");
  EXPECT_EQ(raised.line(), 3);
  const TemplateError failed = error_of("\n{{ x.y }}");
  EXPECT_EQ(failed.kind(), TemplateError::Kind::failed);
  EXPECT_EQ(failed.message(), "'x' is undefined");
  EXPECT_EQ(failed.line(), 2);
  const TemplateError syntax = error_of("\n\n{% if %}");
  EXPECT_EQ(syntax.kind(), TemplateError::Kind::syntax);
  EXPECT_EQ(syntax.line(), 3);
}

TEST(Jinja, RefusesByNameWhatItLeavesOut) {
  for (const char* source : {"{{ 'a'.encode() }}", "{{ 'a' | pprint }}", "{{ lipsum() }}", "{{ [1] | random }}",
                             "{% include 'a' %}", "{{ '\\N{DASH}' }}", "{{ 9223372036854775807 + 1 }}",
                             "{{ 9223372036854775808 }}", "{{ [].append }}{{ ''.join }}", "{{ '\\ud800' }}"})
    EXPECT_EQ(error_of(source).kind(), TemplateError::Kind::refused) << source << ": " << error_of(source).what();
}

TEST(Jinja, DoesNotGiveWhatTheSandboxDoesNot) {
  for (const char* source :
       {"{{ x.append(1) }}", "{{ x.__class__() }}", "{{ {}.update({}) }}", "{{ x.__class__.__mro__ }}"})
    EXPECT_EQ(error_of(source, {{"x", Json::array()}}).kind(), TemplateError::Kind::failed) << source;
  EXPECT_EQ(render("{{ x.append is defined }}{{ x.__class__ }}", {{"x", Json::array()}}), "False");
}

TEST(Jinja, StopsAtEachBound) {
  const auto stopped_by = [](const std::string& source, const Limits& limits = {}) {
    const TemplateError error = error_of(source, Json::object(), limits);
    EXPECT_EQ(error.kind(), TemplateError::Kind::bound) << source.substr(0, 200) << error.what();
    return error.message();
  };
  const std::string endless = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}";
  EXPECT_THAT(stopped_by(endless, {.operations = 100000}), HasSubstr("operations"));
  EXPECT_THAT(stopped_by("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}"), HasSubstr("levels"));
  EXPECT_THAT(stopped_by("{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}"), HasSubstr("levels"));
  EXPECT_THAT(stopped_by("{{ 'abcdefgh' * 999999999 }}", {.memory = 1 << 20}), HasSubstr("memory"));
  EXPECT_THAT(stopped_by("{{ 'a'.center(999999999) }}", {.memory = 1 << 20}), HasSubstr("memory"));
  EXPECT_THAT(stopped_by("{{ '%999999999d' % 1 }}", {.memory = 1 << 20}), HasSubstr("memory"));
  EXPECT_THAT(stopped_by("{{ ('a' * 9999).replace('a', 'b' * 9999) }}", {.memory = 1 << 20}), HasSubstr("memory"));
  EXPECT_THAT(stopped_by("{% for i in range(999) %}0123456789{% endfor %}", {.output = 1000}),
              HasSubstr("writes more"));
  for (const char* part :
       {"(", "[", "{1:", "not ", "-", "1 if 1 else ", "{% if 1 %}", "x(", "{% if x %}{% for x in x %}"}) {
    std::string nested = part[0] == '{' && part[1] == '%' ? "" : "{{ ";
    for (int i = 0; i < 5000; ++i) nested += part;
    EXPECT_THAT(stopped_by(nested), HasSubstr("nested deeper")) << part;
  }
  for (const char* part : {"+a", ".a", "|e", "['a']", "()", " and a", " is b"}) {
    std::string chain = "{{ a";
    for (int i = 0; i < 5000; ++i) chain += part;
    EXPECT_THAT(error_of(chain + " }}").message(), ::testing::AnyOf(HasSubstr("nested deeper"), HasSubstr("chain")))
        << part;
  }
}

// Rings and long chains of objects are let go without deep recursion; leaks and overflows are the sanitizer's to find.
TEST(Jinja, LetsGoOfRingsAndChains) {
  EXPECT_EQ(render("{% set ns = namespace() %}{% set ns.a = ns %}{% set ns.b = [ns] %}x"), "x");
  EXPECT_EQ(
      render("{% set ns = namespace(p=1) %}{% for i in range(5000) %}{% set ns.p = namespace(p=ns.p) %}{% endfor %}x"),
      "x");
  EXPECT_EQ(
      render(
          "{% set ns = namespace(f=1) %}{% macro o() %}{% macro i() %}{{ ns.f }}{% endmacro %}{% set ns.f = i %}{% endmacro %}"
          "{% for x in range(3000) %}{{ o() }}{% endfor %}x"),
      "x");
  const TemplateError deep =
      error_of("{% set ns = namespace(l=[]) %}{% for i in range(5000) %}{% set ns.l = [ns.l] %}{% endfor %}");
  EXPECT_EQ(deep.kind(), TemplateError::Kind::bound);
  const TemplateError wide = error_of(
      "{% set ns = namespace(l=[1]) %}{% for i in range(150) %}{% set ns.l = [ns.l, ns.l] %}{% endfor %}{{ ns.l }}",
      Json::object(), {.operations = 1000000});
  EXPECT_EQ(wide.kind(), TemplateError::Kind::bound);
}

TEST(Jinja, ReadsNumbersAsPythonDoes) {
  const Json variables = parse_ordered_json(R"({"b": 1, "a": [9007199254740993, 1.0, 1e3, -0.0]})", "x");
  EXPECT_EQ(render("{{ a }}", variables), "[9007199254740993, 1.0, 1000.0, -0.0]");
  try {
    parse_ordered_json(R"({"a": "9223372036854775808", "b": 9223372036854775808})", "line 1");
    ADD_FAILURE() << "not refused";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("line 1: the integer 9223372036854775808 does not fit into 64 bits"));
  }
}

TEST(Jinja, AsksForTheTime) {
  const auto now = [](std::string_view format) { return "<" + std::string(format) + ">"; };
  EXPECT_EQ(Template("{{ strftime_now('%d') }}").render(Json::object(), {.limits = {}, .strftime_now = now}).text,
            "<%d>");
  EXPECT_THAT(render("{{ strftime_now('%Y') }}"), ::testing::StartsWith("2"));
}

}  // namespace jinja_test
}  // namespace zero::jinja
