#pragma once
// The Jinja strings that ChatTemplate knows, and the comparison that looks through their spelling.
#include <string>
#include <string_view>
#include <vector>

namespace zero {

struct KnownChatTemplate {
  std::string_view name;
  std::string_view jinja;
};

/// The first of each name is the one that the name stands for. In ChatML strings SYSTEM stands for any default message.
const std::vector<KnownChatTemplate>& known_chat_templates();

/// The one that a name stands for; nullptr where none is called so. TinyLlama's chats are zephyr's.
const KnownChatTemplate* known_chat_template(std::string_view name);

/// Stands between the parts of a canonical source, and in none of them.
inline constexpr char jinja_separator = '\x1f';

/// A Jinja source with everything removed that makes no difference: blank space and comments as transformers'
/// environment (trim_blocks, lstrip_blocks) drops them, quotes, escapes, joined literals, x.y for x['y']. What cannot
/// be understood is given back as it came: equal to nothing known.
std::string canonical_jinja(std::string_view source);

}  // namespace zero
