#pragma once
// Copies data that will not be read again soon. The stores bypass the caches, so the target is not read first.
#include <cstddef>

namespace zero {

/// Like memcpy. The copy is visible to other processors once a later release store is visible.
void stream_copy(std::byte* to, const std::byte* from, std::size_t bytes);

}  // namespace zero
