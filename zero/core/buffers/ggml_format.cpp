#include "zero/core/buffers/ggml_format.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "models/ggml_values.h"

namespace zero {
namespace {

constexpr std::int64_t byte_alignment = 64;

int kind_of(std::optional<GgmlType> type) { return type ? int(*type) + 1 : BlockKinds::plain; }

std::optional<GgmlType> type_of(int kind) {
  return kind == BlockKinds::plain ? std::nullopt : std::optional(GgmlType(kind - 1));
}

}  // namespace

bool has_whole_blocks(const TensorSpec& tensor, GgmlType type) {
  const std::int64_t block = ggml_block(type);
  return tensor.shape.size() >= 2 && tensor.shape.back() % block == 0 && is_cut_between(tensor, block);
}

std::int64_t largest_block(const std::vector<std::vector<TensorSpec>>& tensors, const GgmlTypeOf& type_of) {
  std::int64_t largest = q8_block;
  for (const auto& parts : tensors)
    for (const TensorSpec& tensor : parts)
      if (const auto type = type_of(tensor)) largest = std::max(largest, ggml_block(*type));
  return largest;
}

GgmlFormat::GgmlFormat(const FlatLayout& layout, int shards, const GgmlTypeOf& held_in, at::ScalarType compute,
                       at::Device device)
    : compute_(compute), shard_numel_(layout.numel() / shards) {
  for (const FlatTensor& tensor : layout.tensors()) {
    const auto type = held_in(tensor.spec);
    if (!type) continue;
    ZERO_CHECK(tensor.offset % ggml_block(*type) == 0, tensor.spec.name + " begins with a whole block");
    block_ = std::max(block_, ggml_block(*type));
  }
  ZERO_CHECK(shard_numel_ % block_ == 0, "shards are whole blocks");
  const BlockKinds kinds(layout, block_, [&](const TensorSpec& tensor) { return kind_of(held_in(tensor)); });
  const std::int64_t per_shard = shard_numel_ / block_;
  for (int s = 0; s < shards; ++s) {
    std::vector<Run> runs;
    std::int64_t place = 0;
    for (const BlockRange& range : kinds.within(s * per_shard, (s + 1) * per_shard)) {
      runs.push_back({range.begin * block_, (range.end - range.begin) * block_, type_of(range.kind), place});
      place += (bytes_of(runs.back(), runs.back().numel) + byte_alignment - 1) / byte_alignment * byte_alignment;
    }
    shard_bytes_ = std::max(shard_bytes_, place);
    shards_.push_back(std::move(runs));
  }
  if (!device.is_cuda()) return;
  device_ = std::make_unique<DeviceGgml>(device);
  std::vector<cuda::GgmlRun> all;
  for (int s = 0; s < shards; ++s)
    for (const Run& run : shards_[s])
      all.push_back({run.begin / q8_block, s * shard_bytes_ + run.place, run.type ? int(*run.type) : -1});
  table_ = device_->table_of(all);
}

std::int64_t GgmlFormat::bytes_of(const Run& run, std::int64_t numel) const {
  return run.type ? ggml_bytes(*run.type, numel) : numel * std::int64_t(c10::elementSize(compute_));
}

// Blocks are encoded in host memory and copied to the destination.
void GgmlFormat::encode(const WeightReader& reader, const at::Tensor& rest) const {
  for (const Run& run : shards_.at(std::size_t(reader.shard))) {
    const std::int64_t first = run.begin - reader.shard * shard_numel_;  // index in the part
    for (std::int64_t done = 0; done < run.numel; done += encode_chunk) {
      const std::int64_t count = std::min(encode_chunk, run.numel - done), bytes = bytes_of(run, count);
      const at::Tensor home = rest.narrow(0, run.place + bytes_of(run, done), bytes),
                       out = home.is_cpu() ? home : at::empty({bytes}, at::kByte);
      if (run.type)
        reader.read_as(first + done, count, *run.type, out);
      else
        reader.read(first + done, out.view(compute_));
      if (!home.is_cpu()) home.copy_(out);
    }
  }
}

std::int64_t GgmlFormat::encode_bytes() const {
  return encode_chunk * std::int64_t(2 * sizeof(float));  // the values, and a copy of them for a GPU
}

void GgmlFormat::decode(const at::Tensor& all, const at::Tensor& full) const {
  if (full.is_meta()) return;
  ZERO_CHECK(all.numel() >= all_numel(), "bytes of all shards are needed");
  ZERO_CHECK(full.is_cpu() == !device_ && all.is_cpu() == !device_, "bytes are decoded on the format's device");
  if (device_) return device_->decode(table_, all.narrow(0, 0, all_numel()), full);
  for (std::size_t s = 0; s < shards_.size(); ++s)
    for (const Run& run : shards_[s]) {
      const std::uint8_t* from = all.const_data_ptr<std::uint8_t>() + std::int64_t(s) * shard_bytes_ + run.place;
      const at::Tensor out = full.narrow(0, run.begin, run.numel);
      if (run.type)
        from_ggml(from, *run.type, out);
      else  // past autograd, whose version counters must not see the weights come back (storage.h)
        std::memcpy(out.data_ptr(), from, std::size_t(bytes_of(run, run.numel)));
    }
}

}  // namespace zero
