#include "zero/library/same_values.h"

#include <ATen/ATen.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/log.h"
#include "comm/object_collectives.h"

namespace zero {
namespace {

std::uint64_t checksum_of(const at::Tensor& value, std::uint64_t before) {
  const auto* const bytes = static_cast<const std::byte*>(value.const_data_ptr());
  const std::size_t all = std::size_t(value.nbytes()), most = all / 32 * 32;
  const std::uint64_t sum = checksum(bytes, most);
  before = fnv1a({reinterpret_cast<const char*>(&sum), sizeof sum}, before);
  return all == most ? before : fnv1a({reinterpret_cast<const char*>(bytes + most), all - most}, before);
}

}  // namespace

void check_same_values(const NamedTensors& values, const std::string& call, const std::string& source,
                       Communicator& ranks) {
  std::uint64_t sum = fnv1a("");
  for (const auto& [name, value] : values) sum = checksum_of(value, fnv1a(name, sum));
  const std::vector<std::int64_t> all = all_gather_number(ranks, std::int64_t(sum));
  for (std::size_t rank = 1; rank < all.size(); ++rank)
    if (all[rank] != all[0])
      throw InputError(text(call, ": process ", rank, " passes other tensors than process 0: all pass the same, as ",
                            source, " leaves them on each, or world.broadcast()"));
}

}  // namespace zero
