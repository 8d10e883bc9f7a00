#pragma once
// The Jinja strings that ChatTemplate knows, their answers, and a comparison that ignores their spelling. No LibTorch.
#include <string>
#include <string_view>
#include <vector>

namespace zero {

struct KnownChatTemplate {
  std::string_view name;
  std::string_view jinja;
};

/// The first of each name is the one that the name selects. In ChatML strings SYSTEM stands for any default message.
const std::vector<KnownChatTemplate>& known_chat_templates();

/// The template that a name selects, or nullptr. TinyLlama's chats are zephyr's.
const KnownChatTemplate* known_chat_template(std::string_view name);

/// The template with `default_system` for SYSTEM, and with a generation block around each answer and the mark that ends
/// it. It writes what the template writes.
std::string with_generation_blocks(const KnownChatTemplate& known, std::string_view default_system);

/// Separates the parts of a canonical source, and occurs in none of them.
inline constexpr char jinja_separator = '\x1f';

/// A Jinja source without irrelevant differences: blank space and comments as transformers' environment (trim_blocks,
/// lstrip_blocks) drops them, quotes, escapes, joined literals, x.y for x['y']. A source that cannot be parsed is
/// returned unchanged, and equals nothing known.
std::string canonical_jinja(std::string_view source);

}  // namespace zero
