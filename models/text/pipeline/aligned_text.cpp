#include "models/text/pipeline/aligned_text.h"

#include "base/utf8.h"

namespace zero {

void AlignedText::align(std::size_t offset) {
  aligned = true;
  origins.clear();
  origins.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t size = first_character(std::string_view(text).substr(at)).size();
    const auto begin = static_cast<std::uint32_t>(offset + at);
    origins.insert(origins.end(), size, {begin, begin + static_cast<std::uint32_t>(size)});
    at += size;
  }
}

}  // namespace zero
