#pragma once
// Copies data that will not be read again soon. The stores bypass the caches, which saves reading the target first.
#include <cstddef>

namespace zero {

/// Like memcpy. The copy is visible to other processors when a later release store is.
void stream_copy(std::byte* to, const std::byte* from, std::size_t bytes);

}  // namespace zero
