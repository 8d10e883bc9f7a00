#pragma once
// Template: a Jinja template, rendered as transformers 5 renders chat templates. That means jinja2 3.1 in its immutable
// sandbox, with trim_blocks, lstrip_blocks, break and continue, generation blocks, a tojson that uses json.dumps,
// raise_exception and strftime_now. Templates are not trusted: the time, depth, output and memory of a rendering are
// limited. Does not include LibTorch.
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
  std::vector<Span> generated;        // of generation blocks, even empty ones: code points [begin, end) of text
  std::vector<Span> generated_bytes;  // the same in bytes of text
  /// True if each span contains its block's text. A block may be inside a set or filter block, or follow other text in
  /// a macro. Its span is then the one that transformers computes, which contains other text.
  bool generated_in_place = true;
};

struct RenderOptions {
  Limits limits = {};
  /// Implements strftime_now. By default it formats the local time with C's strftime.
  std::function<std::string(std::string_view format)> strftime_now = nullptr;
};

class Template {
 public:
  /// Throws TemplateError (models/text/jinja/error.h) with the line. `source` must be valid UTF-8.
  explicit Template(std::string_view source);

  /// `variables` is an object whose keys are the names that the template sees. Throws TemplateError with the line, and
  /// InputError for integers beyond 64 bits. Thread-safe.
  Rendered render(const nlohmann::ordered_json& variables, const RenderOptions& options = {}) const;

  /// Does the same with a dict that `variables` makes and charges to the budget.
  Rendered render_with(const std::function<Value(Budget&)>& variables, const RenderOptions& options = {}) const;

  bool has_generation() const;

  /// True if an expression contains this string, or a string that has it as a part between dots.
  bool has_string(std::string_view string) const;

  /// True if an expression contains this name as a variable, an attribute, or a string (has_string()). A template that
  /// does not mention a name can read it only by writing whole objects.
  bool mentions(std::string_view name) const;

 private:
  std::shared_ptr<const Syntax> syntax_;
};

}  // namespace zero::jinja
