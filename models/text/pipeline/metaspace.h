#pragma once
// Metaspace: a character that stands for a space in pre-tokenizers and decoders. Does not include LibTorch.
#include <cstdint>
#include <string>

namespace zero {

class Component;

enum class PrependScheme : std::uint8_t { always, first, never };

struct Metaspace {
  std::string replacement;  // one character
  PrependScheme scheme = PrependScheme::always;
  bool split = true;
};

/// Also accepts the older key add_prefix_space. Throws InputError for an unknown value.
Metaspace read_metaspace(Component& component);

}  // namespace zero
