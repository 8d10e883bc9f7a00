#pragma once
// Template: a Jinja template as transformers 5 renders chat templates: jinja2 3.1 in its immutable sandbox, with
// trim_blocks, lstrip_blocks, break and continue, generation blocks, tojson by json.dumps, raise_exception and
// strftime_now. Not trusted: the time, depth, output and memory that a rendering takes are bounded. No LibTorch.
#include <cstddef>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "models/text/jinja/budget.h"

namespace zero::jinja {

struct Syntax;

struct Rendered {
  struct Span {
    std::size_t begin = 0, end = 0;
    bool operator==(const Span&) const = default;
  };
  std::string text;
  std::vector<Span> generated;  // what generation blocks wrote, code points [begin, end) of text, empty ones too
  /// Whether each of them holds what its block wrote. A block inside of a set or filter block, or behind other text of a
  /// macro, gets the place that transformers gives it, where something else stands.
  bool generated_in_place = true;
};

struct RenderOptions {
  Limits limits = {};
  /// strftime_now; the local time in C's strftime where none is given.
  std::function<std::string(std::string_view format)> strftime_now = nullptr;
};

class Template {
 public:
  /// TemplateError (models/text/jinja/error.h) that names the line. `source` is valid UTF-8.
  explicit Template(std::string_view source);

  /// `variables`: an object; each of its keys is a name that the template sees. TemplateError that names the line.
  /// InputError for integers beyond 64 bits. Thread-safe.
  Rendered render(const nlohmann::ordered_json& variables, const RenderOptions& options = {}) const;

  bool has_generation() const;

  /// Whether an expression has this string, or one with this as a part between dots.
  bool has_string(std::string_view string) const;

  /// Whether an expression has this name: as a variable, an attribute, or as has_string() says. What is named nowhere is
  /// read by no template but one that writes whole objects.
  bool mentions(std::string_view name) const;

 private:
  std::shared_ptr<const Syntax> syntax_;
};

}  // namespace zero::jinja
