#include "comm/fake/fake_communicator.h"

#include <cstring>

#include "comm/part_offsets.h"
#include "comm/sum_tree.h"

namespace zero {

void FakeCommunicator::do_all_gather(const at::Tensor& full, const at::Tensor& shard, const CallRecord& call) {
  char* out = static_cast<char*>(full.data_ptr());
  const void* in = shard.const_data_ptr();
  for (int r = 0; r < size(); ++r, out += shard.nbytes())
    if (out != in && shard.nbytes()) std::memcpy(out, in, shard.nbytes());
}

void FakeCommunicator::do_reduce_scatter(const at::Tensor& shard, const at::Tensor& full, ReduceOptions options,
                                         const CallRecord& call) {
  const std::size_t offset = static_cast<std::size_t>(rank()) * shard.numel() * full.element_size();
  const void* own = static_cast<const char*>(full.const_data_ptr()) + offset;
  sum_tree({{&own, 1}, full.scalar_type()}, {shard.data_ptr(), shard.scalar_type(), options.accumulate}, shard.numel(),
           options.sum_type);
}

void FakeCommunicator::do_all_to_all(const at::Tensor& out, const std::vector<std::int64_t>& out_counts,
                                     const at::Tensor& in, const std::vector<std::int64_t>& in_counts,
                                     const CallRecord& call) {
  const std::int64_t element = in.element_size(), own = out_counts[rank()];
  if (out.nbytes()) std::memset(out.data_ptr(), 0, out.nbytes());
  if (own == 0) return;
  std::memcpy(static_cast<char*>(out.data_ptr()) + part_offsets(out_counts)[rank()] * element,
              static_cast<const char*>(in.const_data_ptr()) + part_offsets(in_counts)[rank()] * element, own * element);
}

std::unique_ptr<Communicator> FakeCommunicator::do_split(const std::vector<int>& ranks, const CallRecord& call) {
  return std::make_unique<FakeCommunicator>(place_in(ranks).key, int(ranks.size()));
}

}  // namespace zero
