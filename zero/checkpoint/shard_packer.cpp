#include "zero/checkpoint/shard_packer.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "zero/checkpoint/state_shares.h"

namespace zero {
namespace {

void pack_section(ParameterGroup& group, StateShard& shard, const ShardSection& own, ShardPacker& packer) {
  const std::vector<StateSpec> specs = group.visited_states(shard);
  const std::int64_t first = own.begin - shard.begin();
  group.visit_states(shard, StateAccess::read, {first, first + own.count}, [&](const StateChunk& chunk) {
    const std::int64_t begin = std::max(first, chunk.begin), end = std::min(first + own.count, chunk.end);
    if (begin >= end) return;
    std::vector<const void*> states;
    for (std::size_t s = 0; s < specs.size(); ++s)
      states.push_back(static_cast<const std::byte*>(chunk.states[s]) + specs[s].bytes(begin - chunk.begin));
    packer.append(states, end - begin);
  });
}

}  // namespace

ShardPacker::ShardPacker(const ShardFormat& format, Place place, Use use)
    : format_(format), place_(std::move(place)), use_(std::move(use)) {}

void ShardPacker::append(const std::vector<const void*>& states, std::int64_t count) {
  for (std::int64_t done = 0; done < count;) {
    const ShardChunk chunk = format_.chunk(chunk_);
    const std::vector<StateSpec>& specs = format_.states(chunk.section);
    ZERO_CHECK(states.size() == specs.size(), "a section has the states of its group");
    std::byte* const at = place_(chunk);
    const std::int64_t n = std::min(count - done, chunk.count - filled_);
    for (std::size_t s = 0; s < specs.size(); ++s)
      std::memcpy(at + format_.byte_of(chunk, s, filled_),
                  static_cast<const std::byte*>(states[s]) + specs[s].bytes(done), std::size_t(specs[s].bytes(n)));
    done += n;
    filled_ += n;
    if (filled_ < chunk.count) continue;
    const std::int64_t used = state_bytes(specs, chunk.count);
    std::memset(at + used, 0, static_cast<std::size_t>(chunk.bytes - used));
    if (use_) use_(chunk, at);
    ++chunk_;
    filled_ = 0;
  }
}

void ShardPacker::finish() const {
  ZERO_CHECK(chunk_ == format_.chunks() && filled_ == 0, "a shard file lacks states");
}

void pack_states(const CheckpointModels& of, const ShardFormat& format, ShardPacker packer) {
  auto section = format.sections().begin();
  const auto pack_whole = [&](const at::Tensor& array) {
    if (section++->count == 0) return;
    const at::Tensor values = array.to(at::kCPU).contiguous();
    packer.append({values.const_data_ptr()}, values.numel());
  };
  for (const CheckpointModel& model : of.models) {
    for (const SavedPart& part : saved_parts(model.states)) {
      const ShardSection own = *section++;
      if (own.count == 0) continue;
      if (part.shard)
        pack_section(*part.group, *part.shard, own, packer);
      else
        part.group->visit_weights({own.begin, own.count}, [&](const at::Tensor& values) {
          packer.append({values.const_data_ptr()}, values.numel());
        });
    }
    for (const SavedStatistic& statistic : saved_statistics(model.states)) pack_whole(statistic.values);
  }
  for (const SavedStatistic& array : shared_arrays(of)) pack_whole(array.values);
  if (of.values)
    for (const auto& [name, value] : *of.values) pack_whole(value);
  packer.finish();
}

}  // namespace zero
