#include "models/ops/huge_pages.h"

#include <ATen/ATen.h>
#include <c10/util/accumulate.h>
#include <sys/mman.h>

#include <cstdint>

namespace zero {

at::Tensor empty_in_huge_pages(at::IntArrayRef shape, at::ScalarType type) {
  constexpr std::size_t page = 2 << 20;
  const auto options = at::TensorOptions().dtype(type);
  const std::size_t bytes = static_cast<std::size_t>(c10::multiply_integers(shape)) * c10::elementSize(type);
  if (bytes < page) return at::empty(shape, options);
  // Mapped with room to align: only whole, aligned pages of 2 MiB become huge.
  const std::size_t mapped = bytes + page;
  void* map = ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (map == MAP_FAILED) return at::empty(shape, options);  // which names the bytes that are missing
  void* begin = reinterpret_cast<void*>((reinterpret_cast<std::uintptr_t>(map) + page - 1) / page * page);
  ::madvise(begin, bytes, MADV_HUGEPAGE);
  return at::from_blob(
      begin, shape, [map, mapped](void*) { ::munmap(map, mapped); }, options);
}

}  // namespace zero
