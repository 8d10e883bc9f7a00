#include "zero/core/buffers/nf4_codec.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/error.h"
#include "base/log.h"
#include "offload/quantized/nf4.h"
#include "offload/quantized/nf4_scales.h"

namespace zero {
namespace {

constexpr std::int64_t byte_alignment = 64;
constexpr std::int64_t blocks_at_once = 16 * nf4_scale_group;  // their scales are decoded together

std::int64_t rounded_up(std::int64_t n, std::int64_t to) { return (n + to - 1) / to * to; }

constexpr int matrix = 1;  // the other kind is BlockKinds::plain
int kind_of(const TensorSpec& tensor) { return tensor.shape.size() >= 2 ? matrix : BlockKinds::plain; }

/// Returns the block after a tensor's last one.
std::int64_t end_block(const FlatTensor& tensor) {
  return rounded_up(tensor.offset + tensor.spec.numel(), nf4_block) / nf4_block;
}

/// A run of quantized blocks in memory.
struct RunBytes {
  RunBytes(std::uint8_t* start, std::int64_t blocks, std::size_t groups)
      : codes(start),
        after_codes(start + blocks * nf4_block / 2),
        scale_codes(after_codes + groups * sizeof(Nf4ScaleHeader)) {}
  float* largest() const { return reinterpret_cast<float*>(after_codes); }
  Nf4ScaleHeader* headers() const { return reinterpret_cast<Nf4ScaleHeader*>(after_codes); }

  std::uint8_t* codes;
  std::uint8_t* after_codes;
  std::uint8_t* scale_codes;
};

}  // namespace

Nf4Codec::Nf4Codec(const FlatLayout& layout, int shards, Nf4CodecOptions format)
    : format_(format), shard_numel_(layout.numel() / shards), kinds_(layout, nf4_block, kind_of) {
  if (format_.device.is_cuda()) device_ = std::make_unique<DeviceNf4>(format_.device);
  ZERO_CHECK(shard_numel_ % nf4_block == 0, text("a shard of ", shard_numel_, " elements is not whole blocks"));
  if (format_.quantize_scales) find_scaled_tensors(layout);
  const std::int64_t per_shard = shard_numel_ / nf4_block;
  for (int s = 0; s < shards; ++s) {
    std::vector<Run> runs;
    for (const BlockRange& range : kinds_.within(s * per_shard, (s + 1) * per_shard))
      runs.push_back({range.begin * nf4_block, range.end - range.begin, range.kind == matrix, 0, {}});
    std::int64_t place = 0;
    for (Run& run : runs) {
      if (run.quantized && format_.quantize_scales) add_groups(run);
      run.place = place;
      place += bytes_of(run);
    }
    shard_bytes_ = std::max(shard_bytes_, place);
    shards_.push_back(std::move(runs));
  }
  if (!device_) return;
  std::vector<cuda::Nf4Run> runs;
  for (int s = 0; s < shards; ++s)
    for (const Run& run : shards_[s]) add_runs(run, s * shard_bytes_ + run.place, runs);
  table_ = device_->table_of(runs);
}

// A block belongs to the tensor of its first element. The padding at the end, which is zeros, counts as a tensor of its
// own.
void Nf4Codec::find_scaled_tensors(const FlatLayout& layout) {
  const auto add = [&](std::int64_t begin, std::int64_t end) {
    BlockRange matrices{end, begin};
    for (const BlockRange& range : kinds_.within(begin, end))
      if (range.kind == matrix) matrices = {std::min(matrices.begin, range.begin), range.end};
    if (matrices.begin < matrices.end) scaled_.push_back(matrices);
  };
  std::int64_t next = 0;
  for (const FlatTensor& tensor : layout.tensors()) {
    add(next, end_block(tensor));
    next = std::max(next, end_block(tensor));
  }
  add(next, layout.numel() / nf4_block);
}

void Nf4Codec::add_groups(Run& run) const {
  const std::int64_t first = run.begin / nf4_block, last = first + run.blocks;
  for (std::size_t t = 0; t < scaled_.size(); ++t) {
    const std::int64_t before = std::max<std::int64_t>(0, first - scaled_[t].begin) / nf4_scale_group;
    const std::int64_t stop = std::min(last, scaled_[t].end);
    for (std::int64_t begin = scaled_[t].begin + before * nf4_scale_group; begin < stop; begin += nf4_scale_group) {
      const std::int64_t end = std::min(begin + nf4_scale_group, scaled_[t].end);
      if (first < end) run.groups.push_back({std::max(begin, first), std::min(end, last), begin, end, t});
    }
  }
}

std::int64_t Nf4Codec::bytes_of(const Run& run) const {
  std::int64_t bytes = run.blocks * nf4_block * std::int64_t(c10::elementSize(format_.type));
  if (run.quantized) bytes = run.blocks * nf4_block_bytes;
  if (run.quantized && format_.quantize_scales)
    bytes = run.blocks * (nf4_block / 2 + 1) + std::int64_t(run.groups.size() * sizeof(Nf4ScaleHeader));
  return rounded_up(bytes, byte_alignment);
}

void Nf4Codec::encode(int shard, std::int64_t begin, const at::Tensor& values, const at::Tensor& bytes,
                      const at::Tensor& largest) const {
  ZERO_CHECK(begin % nf4_block == 0 && values.numel() % nf4_block == 0, "only whole blocks are encoded");
  ZERO_CHECK(largest.defined() == format_.quantize_scales, "largest values are handed out where scales are quantized");
  float* first = largest.defined() ? largest.data_ptr<float>() + begin / nf4_block : nullptr;
  for (const Run& run : shards_.at(shard)) encode_run(run, shard * shard_numel_ + begin, values, bytes, first);
}

void Nf4Codec::encode_run(const Run& run, std::int64_t begin, const at::Tensor& values, const at::Tensor& bytes,
                          float* largest) const {
  const std::int64_t from = std::max(begin, run.begin),
                     to = std::min(begin + values.numel(), run.begin + run.blocks * nf4_block);
  if (from >= to) return;
  const at::Tensor part = values.narrow(0, from - begin, to - from);
  if (run.quantized) {
    const RunBytes in(bytes.data_ptr<std::uint8_t>() + run.place, run.blocks, run.groups.size());
    const std::int64_t first = (from - run.begin) / nf4_block;
    float* scales = largest ? largest + (from - begin) / nf4_block : in.largest() + first;
    const Nf4Blocks out{in.codes + first * nf4_block / 2, scales, (to - from) / nf4_block};
    return part.is_cpu() ? nf4_encode(part.data_ptr<float>(), out) : device_->encode(part, out);
  }
  const std::int64_t size = c10::elementSize(format_.type);
  bytes.narrow(0, run.place + (from - run.begin) * size, (to - from) * size).view(format_.type).copy_(part);
}

void Nf4Codec::encode_all_scales(int shard, const at::Tensor& largest, const at::Tensor& bytes) const {
  ZERO_CHECK(largest.numel() == shard_numel_ / nf4_block * std::int64_t(shards_.size()),
             "largest values of all shards are needed");
  const float* values = largest.data_ptr<float>();
  std::vector<float> means;
  for (const BlockRange& tensor : scaled_)
    means.push_back(mean_scale(values + tensor.begin, tensor.end - tensor.begin));
  for (const Run& run : shards_.at(shard)) {
    const std::int64_t codes = run.blocks * nf4_block / 2,
                       scales = std::int64_t(run.groups.size() * sizeof(Nf4ScaleHeader)) + run.blocks;
    if (run.groups.empty()) continue;
    const at::Tensor to = bytes.narrow(0, run.place + codes, scales),
                     on_host = bytes.is_cpu() ? to : at::empty({scales}, at::kByte);
    encode_scales_of(run, values, means, on_host.data_ptr<std::uint8_t>());
    if (!bytes.is_cpu()) to.copy_(on_host);
  }
}

void Nf4Codec::encode_scales_of(const Run& run, const float* largest, const std::vector<float>& means,
                                std::uint8_t* after_codes) const {
  auto* headers = reinterpret_cast<Nf4ScaleHeader*>(after_codes);
  std::uint8_t* codes = after_codes + run.groups.size() * sizeof(Nf4ScaleHeader);
  for (std::size_t g = 0; g < run.groups.size(); ++g) {
    const ScaleGroup& group = run.groups[g];
    headers[g] = scale_header(largest + group.whole_begin, group.whole_end - group.whole_begin, means[group.tensor]);
    encode_scales(largest + group.begin, group.end - group.begin, headers[g],
                  codes + group.begin - run.begin / nf4_block);
  }
}

void Nf4Codec::decode_quantized(const Run& run, std::uint8_t* start, const at::Tensor& out) const {
  const RunBytes in(start, run.blocks, run.groups.size());
  if (!format_.quantize_scales) return nf4_decode({in.codes, in.largest(), run.blocks}, out);
  std::array<float, blocks_at_once> largest;
  std::int64_t done = 0;
  for (std::size_t g = 0; g < run.groups.size();) {
    std::int64_t blocks = 0;
    for (; g < run.groups.size() && blocks + nf4_scale_group <= blocks_at_once; ++g) {
      const std::int64_t count = run.groups[g].end - run.groups[g].begin;
      decode_scales(in.scale_codes + done + blocks, count, in.headers()[g], largest.data() + blocks);
      blocks += count;
    }
    nf4_decode({in.codes + done * nf4_block / 2, largest.data(), blocks},
               out.narrow(0, done * nf4_block, blocks * nf4_block));
    done += blocks;
  }
}

// `start`: place of the run's bytes among those of all shards. Groups of one tensor follow each other without a gap.
void Nf4Codec::add_runs(const Run& run, std::int64_t start, std::vector<cuda::Nf4Run>& runs) const {
  const std::int64_t first = run.begin / nf4_block, after_codes = start + run.blocks * nf4_block / 2;
  if (!run.quantized) return runs.push_back({first, start});
  if (!format_.quantize_scales) return runs.push_back({first, start, after_codes});
  const std::int64_t scale_codes = after_codes + std::int64_t(run.groups.size() * sizeof(Nf4ScaleHeader));
  for (std::size_t g = 0; g < run.groups.size(); ++g) {
    const ScaleGroup& group = run.groups[g];
    if (g > 0 && run.groups[g - 1].tensor == group.tensor) continue;
    const std::int64_t before = group.begin - first;
    runs.push_back({group.begin, start + before * nf4_block / 2, scale_codes + before,
                    after_codes + std::int64_t(g * sizeof(Nf4ScaleHeader)), group.begin - group.whole_begin});
  }
}

void Nf4Codec::decode(const at::Tensor& bytes, const at::Tensor& full) const {
  if (full.is_meta()) return;
  ZERO_CHECK(bytes.numel() >= all_bytes(), "bytes of all shards are needed");
  ZERO_CHECK(full.is_cpu() == !device_ && bytes.is_cpu() == !device_, "bytes are decoded on the codec's device");
  if (device_) return device_->decode(table_, bytes.narrow(0, 0, all_bytes()), full);
  for (std::size_t s = 0; s < shards_.size(); ++s)
    for (const Run& run : shards_[s]) {
      std::uint8_t* start = bytes.data_ptr<std::uint8_t>() + std::int64_t(s) * shard_bytes_ + run.place;
      const std::int64_t numel = run.blocks * nf4_block;
      const at::Tensor out = full.narrow(0, run.begin, numel);
      if (run.quantized)
        decode_quantized(run, start, out);
      else  // past autograd, whose version counters must not see the weights come back (storage.h)
        std::memcpy(out.data_ptr(), start, std::size_t(numel) * c10::elementSize(format_.type));
    }
}

}  // namespace zero
