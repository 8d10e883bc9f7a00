#pragma once
// Memory in huge pages, for weights that every new token reads from one end to the other. Small pages would take up to
// half of the memory's rate: the processor looks up every page, and stops its prefetch there.
#include <ATen/core/Tensor.h>

namespace zero {

/// A tensor on the CPU without values, like at::empty(). From 2 MiB on its memory is apart from the heap and asks for
/// huge pages; a kernel without them gives small ones.
at::Tensor empty_in_huge_pages(at::IntArrayRef shape, at::ScalarType type);

}  // namespace zero
