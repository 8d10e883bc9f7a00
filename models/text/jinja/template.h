#pragma once
// Template: a Jinja template, rendered as transformers 5 renders chat templates. That is jinja2 3.1 in its immutable
// sandbox, with trim_blocks, lstrip_blocks, break and continue, generation blocks, tojson by json.dumps,
// raise_exception and strftime_now. Templates are not trusted: the time, depth, output and memory of a rendering are
// bounded. No LibTorch.
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
class Value;

struct Rendered {
  struct Span {
    std::size_t begin = 0, end = 0;
    bool operator==(const Span&) const = default;
  };
  std::string text;
  std::vector<Span> generated;        // texts of generation blocks, code points [begin, end) of text, empty ones too
  std::vector<Span> generated_bytes;  // the same in bytes of text
  /// True if each span holds its block's text. A block inside of a set or filter block, or after other text of a macro,
  /// gets transformers' place for it, which holds another text.
  bool generated_in_place = true;
};

struct RenderOptions {
  Limits limits = {};
  /// strftime_now. By default the local time with C's strftime.
  std::function<std::string(std::string_view format)> strftime_now = nullptr;
};

class Template {
 public:
  /// Throws TemplateError (models/text/jinja/error.h) with the line. `source` is valid UTF-8.
  explicit Template(std::string_view source);

  /// `variables` is an object; each of its keys is a name that the template sees. Throws TemplateError with the line,
  /// and InputError for integers beyond 64 bits. Thread-safe.
  Rendered render(const nlohmann::ordered_json& variables, const RenderOptions& options = {}) const;

  /// The same with variables that `variables` makes, a dict charged to the budget.
  Rendered render_with(const std::function<Value(Budget&)>& variables, const RenderOptions& options = {}) const;

  bool has_generation() const;

  /// True if an expression has this string, or one with it as a part between dots.
  bool has_string(std::string_view string) const;

  /// True if an expression has this name: as a variable, an attribute, or as has_string() says. A template that never
  /// names it can read it only by writing whole objects.
  bool mentions(std::string_view name) const;

 private:
  std::shared_ptr<const Syntax> syntax_;
};

}  // namespace zero::jinja
