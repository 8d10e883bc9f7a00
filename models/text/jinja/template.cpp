#include "models/text/jinja/template.h"

#include <algorithm>
#include <ctime>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/log.h"
#include "base/utf8.h"
#include "models/text/jinja/error.h"
#include "models/text/jinja/language/parser.h"
#include "models/text/jinja/run/interpreter.h"

namespace zero::jinja {
namespace {

using Json = nlohmann::ordered_json;

Value value_of(Budget& budget, const Json& json) {
  switch (json.type()) {
    case Json::value_t::boolean:
      return Value::boolean(json.get<bool>());
    case Json::value_t::number_integer:
      return Value::integer(json.get<std::int64_t>());
    case Json::value_t::number_unsigned:
      if (json.get<std::uint64_t>() > INT64_MAX)
        refuse(text("the integer ", json.dump(), " does not fit into 64 bits"));
      return Value::integer(json.get<std::int64_t>());
    case Json::value_t::number_float:
      return Value::real(json.get<double>());
    case Json::value_t::string:
      return make_string(&budget, json.get<std::string>());
    case Json::value_t::array: {
      std::vector<Value> items;
      for (const Json& item : json) items.push_back(value_of(budget, item));
      return make_list(&budget, std::move(items));
    }
    case Json::value_t::object: {
      DictBuilder dict(&budget);
      for (const auto& [key, value] : json.items()) dict.set(make_string(&budget, key), value_of(budget, value));
      return dict.take();
    }
    default:
      return Value::none();
  }
}

std::string local_time(std::string_view format) {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  if (format.empty()) return "";
  if (format.size() > 1000) fail("strftime_now: a format of more than 1000 bytes");
  char buffer[16384];
  return {buffer, std::strftime(buffer, sizeof buffer, std::string(format).c_str(), &local)};
}

}  // namespace

Template::Template(std::string_view source) {
  require_utf8(source, "the template");
  syntax_ = std::make_shared<const Syntax>(parse(source));
}

bool Template::has_generation() const { return syntax_->has_generation; }

bool Template::has_string(std::string_view string) const { return syntax_->strings.contains(string); }

bool Template::mentions(std::string_view name) const { return syntax_->names.contains(name) || has_string(name); }

Rendered Template::render(const Json& variables, const RenderOptions& options) const {
  ZERO_CHECK(variables.is_object(), "variables must be an object");
  return render_with([&](Budget& budget) { return value_of(budget, variables); }, options);
}

Rendered Template::render_with(const std::function<Value(Budget&)>& variables, const RenderOptions& options) const {
  Budget budget(options.limits);
  Runtime runtime{&budget, options.strftime_now ? options.strftime_now : local_time};
  Rendered rendered;
  std::vector<GeneratedSpan> spans;
  rendered.text = Interpreter(*syntax_, runtime, variables(budget)).run(spans);
  for (const GeneratedSpan& span : spans) {
    const std::string_view there = std::string_view(rendered.text).substr(std::min(span.byte, rendered.text.size()));
    rendered.generated.push_back({span.begin, span.end});
    rendered.generated_bytes.push_back({span.byte, span.byte + span.written.utf8().size()});
    rendered.generated_in_place = rendered.generated_in_place && there.starts_with(span.written.utf8());
  }
  return rendered;
}

}  // namespace zero::jinja
