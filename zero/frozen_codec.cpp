#include "zero/frozen_codec.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>

#include "comm/error.h"
#include "comm/log.h"
#include "offload/nf4.h"

namespace zero {
namespace {

constexpr std::int64_t byte_alignment = 64;

std::int64_t rounded_up(std::int64_t n, std::int64_t to) { return (n + to - 1) / to * to; }

/// By block of the flat vector: whether it belongs to a matrix. Padding goes with what stands before it.
std::vector<bool> matrix_blocks(const FlatLayout& layout) {
  std::vector<bool> matrix(layout.numel() / nf4_block, true);
  for (const FlatTensor& tensor : layout.tensors())
    if (tensor.spec.shape.size() < 2)
      for (std::int64_t b = tensor.offset / nf4_block; b * nf4_block < tensor.offset + tensor.spec.numel(); ++b) matrix[b] = false;
  return matrix;
}

Nf4Blocks blocks_at(const at::Tensor& bytes, std::int64_t place, std::int64_t all, std::int64_t first, std::int64_t count) {
  std::uint8_t* start = bytes.data_ptr<std::uint8_t>() + place;
  return {start + first * nf4_block / 2, reinterpret_cast<float*>(start + all * nf4_block / 2) + first, count};
}

}  // namespace

FrozenCodec::FrozenCodec(const FlatLayout& layout, int shards, at::ScalarType type) : type_(type), shard_numel_(layout.numel() / shards) {
  ZERO_CHECK(shard_numel_ % nf4_block == 0, text("a shard of ", shard_numel_, " elements is not whole blocks"));
  const std::vector<bool> matrix = matrix_blocks(layout);
  const std::int64_t per_shard = shard_numel_ / nf4_block;
  for (int s = 0; s < shards; ++s) {
    std::vector<Run> runs;
    std::int64_t place = 0;
    for (std::int64_t b = s * per_shard; b < (s + 1) * per_shard; ++b) {
      if (runs.empty() || runs.back().quantized != matrix[b]) {
        if (!runs.empty()) place += bytes_of(runs.back());
        runs.push_back({b * nf4_block, 0, matrix[b], place});
      }
      ++runs.back().blocks;
    }
    if (!runs.empty()) place += bytes_of(runs.back());
    shard_bytes_ = std::max(shard_bytes_, place);
    shards_.push_back(std::move(runs));
  }
}

std::int64_t FrozenCodec::bytes_of(const Run& run) const {
  return rounded_up(run.blocks * (run.quantized ? nf4_block_bytes : nf4_block * std::int64_t(c10::elementSize(type_))), byte_alignment);
}

void FrozenCodec::encode(int shard, std::int64_t begin, const at::Tensor& values, const at::Tensor& bytes) const {
  ZERO_CHECK(begin % nf4_block == 0 && values.numel() % nf4_block == 0, "only whole blocks are encoded");
  for (const Run& run : shards_.at(shard)) encode_run(run, shard * shard_numel_ + begin, values, bytes);
}

void FrozenCodec::encode_run(const Run& run, std::int64_t begin, const at::Tensor& values, const at::Tensor& bytes) const {
  const std::int64_t from = std::max(begin, run.begin), to = std::min(begin + values.numel(), run.begin + run.blocks * nf4_block);
  if (from >= to) return;
  const at::Tensor part = values.narrow(0, from - begin, to - from);
  if (run.quantized)
    return nf4_encode(part.data_ptr<float>(), blocks_at(bytes, run.place, run.blocks, (from - run.begin) / nf4_block, (to - from) / nf4_block));
  const std::int64_t size = c10::elementSize(type_);
  bytes.narrow(0, run.place + (from - run.begin) * size, (to - from) * size).view(type_).copy_(part);
}

void FrozenCodec::decode(const at::Tensor& bytes, const at::Tensor& full) const {
  ZERO_CHECK(bytes.numel() >= all_bytes(), "bytes of all shards are needed");
  for (std::size_t s = 0; s < shards_.size(); ++s)
    for (const Run& run : shards_[s]) {
      const std::int64_t place = std::int64_t(s) * shard_bytes_ + run.place, numel = run.blocks * nf4_block;
      const at::Tensor out = full.narrow(0, run.begin, numel);
      if (run.quantized)
        nf4_decode(blocks_at(bytes, place, run.blocks, 0, run.blocks), out);
      else  // past autograd, whose version counters must not see the weights come back (storage.h)
        std::memcpy(out.data_ptr(), bytes.data_ptr<std::uint8_t>() + place, std::size_t(numel) * c10::elementSize(type_));
    }
}

}  // namespace zero
