#pragma once
// Metaspace: a character that stands for a space, as pre-tokenizers and decoders have it. No LibTorch.
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

/// With the older add_prefix_space, too. InputError for a value that is not known.
Metaspace read_metaspace(Component& component);

}  // namespace zero
