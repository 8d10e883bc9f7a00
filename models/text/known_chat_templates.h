#pragma once
// The Jinja strings that ChatTemplate knows, the place where each writes answers, and a comparison that ignores
// differences in spelling. Does not include LibTorch.
#include <string>
#include <string_view>
#include <vector>

namespace zero {

struct KnownChatTemplate {
  std::string_view name;
  std::string_view jinja;
};

/// A name selects the first template with that name. In ChatML strings, SYSTEM stands for any default system message.
const std::vector<KnownChatTemplate>& known_chat_templates();

/// The template that a name selects, or nullptr. TinyLlama uses the template "zephyr".
const KnownChatTemplate* known_chat_template(std::string_view name);

/// Returns the template with `default_system` in place of SYSTEM, and with a generation block around each answer and
/// the text that ends it. The template's output does not change.
std::string with_generation_blocks(const KnownChatTemplate& known, std::string_view default_system);

/// Separates the parts of a canonical source. It occurs in none of them.
inline constexpr char jinja_separator = '\x1f';

/// Normalises a Jinja source. It drops white space and comments as transformers' environment does (trim_blocks,
/// lstrip_blocks). It unifies quotes, escapes, joined literals, and x.y with x['y']. A source that cannot be parsed is
/// returned unchanged, and so equals no known template.
std::string canonical_jinja(std::string_view source);

}  // namespace zero
