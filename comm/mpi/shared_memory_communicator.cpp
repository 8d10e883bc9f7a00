#include "comm/mpi/shared_memory_communicator.h"

#include <c10/core/ScalarType.h>

#include <algorithm>
#include <cstring>

#include "comm/mpi/non_temporal_copy.h"
#include "comm/sum_tree.h"

namespace zero {
namespace {

constexpr std::int64_t small = 16 << 10;  // bytes: below it, everyone sums everything in one round

}  // namespace

std::int64_t SharedMemoryCommunicator::piece_numel(std::size_t element) const {
  const std::int64_t bytes = window_.slot_bytes() / std::max(1, window_.size() - 1) / 64 * 64;
  return bytes / static_cast<std::int64_t>(element);
}

void SharedMemoryCommunicator::sum_pieces(const std::byte* own, std::int64_t piece, std::byte* out, std::int64_t numel,
                                          const ReduceTypes& types) {
  const std::int64_t element = c10::elementSize(types.in);
  std::vector<const void*> inputs(window_.size());
  for (int r = 0; r < window_.size(); ++r)
    inputs[r] = r == window_.rank() ? own : window_.slot_of(r) + place(r, window_.rank()) * piece * element;
  sum_tree({inputs, types.in}, {out, types.out, types.accumulate}, numel, types.sum);
}

void SharedMemoryCommunicator::do_all_gather(const at::Tensor& whole, const at::Tensor& part, const CallRecord& call) {
  std::byte* full = bytes_of(whole);
  const std::byte* shard = bytes_of(part);
  const std::size_t bytes = part.nbytes();
  if (bytes == 0) return;
  window_.begin(call);
  const std::size_t chunk = window_.slot_bytes(), chunks = (bytes + chunk - 1) / chunk;
  const bool in_place = full + window_.rank() * bytes == shard;
  const auto length = [&](std::size_t k) { return std::min(chunk, bytes - k * chunk); };
  const auto write = [&](std::size_t k) {
    std::memcpy(window_.open(), shard + k * chunk, length(k));
    window_.post();
  };
  write(0);
  for (std::size_t k = 0; k < chunks; ++k) {
    if (k + 1 < chunks) write(k + 1);
    window_.read();
    if (!in_place) stream_copy(full + window_.rank() * bytes + k * chunk, shard + k * chunk, length(k));
    for (int away = 1; away < window_.size(); ++away) {
      const int r = (window_.rank() + away) % window_.size();
      window_.await(r);
      stream_copy(full + r * bytes + k * chunk, window_.slot_of(r), length(k));
    }
    window_.finish();
  }
}

void SharedMemoryCommunicator::do_reduce_scatter(const at::Tensor& part, const at::Tensor& whole, ReduceOptions options,
                                                 const CallRecord& call) {
  const std::byte* full = bytes_of(whole);
  std::byte* shard = bytes_of(part);
  const std::int64_t numel = part.numel();
  const ReduceTypes types = ReduceTypes::of(whole, part, options);
  if (numel == 0) return;
  window_.begin(call);
  const std::int64_t in = c10::elementSize(types.in), out = c10::elementSize(types.out);
  const std::int64_t piece = piece_numel(in), chunks = (numel + piece - 1) / piece;
  const auto length = [&](std::int64_t k) { return std::min(piece, numel - k * piece); };
  const auto write = [&](std::int64_t k) {
    std::byte* slot = window_.open();
    for (int r = 0; r < window_.size(); ++r)
      if (r != window_.rank())
        std::memcpy(slot + place(window_.rank(), r) * piece * in, full + (r * numel + k * piece) * in, length(k) * in);
    window_.post();
  };
  write(0);
  for (std::int64_t k = 0; k < chunks; ++k) {
    if (k + 1 < chunks) write(k + 1);
    window_.read();
    window_.await_all();
    sum_pieces(full + (window_.rank() * numel + k * piece) * in, piece, shard + k * piece * out, length(k), types);
    window_.finish();
  }
}

void SharedMemoryCommunicator::all_reduce_small(std::byte* data, std::int64_t numel, const ReduceTypes& types) {
  std::memcpy(window_.open(), data, numel * c10::elementSize(types.in));
  window_.post();
  window_.read();
  window_.await_all();
  std::vector<const void*> inputs(window_.size());
  for (int r = 0; r < window_.size(); ++r) inputs[r] = window_.slot_of(r);
  sum_tree({inputs, types.in}, {data, types.out}, numel, types.sum);
  window_.finish();
}

/// In each chunk every rank sums one piece, then all read the pieces of all.
void SharedMemoryCommunicator::do_all_reduce(const at::Tensor& tensor, ReduceOptions options, const CallRecord& call) {
  std::byte* data = bytes_of(tensor);
  const std::int64_t numel = tensor.numel();
  const ReduceTypes types = ReduceTypes::of(tensor, tensor, options);
  if (numel == 0) return;
  window_.begin(call);
  const std::int64_t element = c10::elementSize(types.in);
  if (numel * element <= std::min<std::int64_t>(small, window_.slot_bytes()))
    return all_reduce_small(data, numel, types);
  const int ranks = window_.size(), self = window_.rank();
  const std::int64_t piece = piece_numel(element), chunk = piece / 16 * 16 * ranks,
                     chunks = (numel + chunk - 1) / chunk;
  const auto part = [&](std::int64_t k, int r) {
    const Piece p = piece_of(std::min(chunk, numel - k * chunk), ranks, r);
    return Piece{k * chunk + p.begin, k * chunk + p.end};
  };
  const auto offer = [&](std::int64_t k) {
    std::byte* slot = window_.open();
    for (int r = 0; r < ranks; ++r)
      if (r != self)
        std::memcpy(slot + place(self, r) * piece * element, data + part(k, r).begin * element,
                    part(k, r).numel() * element);
    window_.post();
  };
  const auto sum_own = [&](std::int64_t k) {
    window_.read();
    window_.await_all();
    std::byte* own = data + part(k, self).begin * element;
    sum_pieces(own, piece, own, part(k, self).numel(), types);
    window_.finish();
    std::memcpy(window_.open(), own, part(k, self).numel() * element);
    window_.post();
  };
  const auto collect = [&](std::int64_t k) {
    window_.read();
    for (int away = 1; away < ranks; ++away) {
      const int r = (self + away) % ranks;
      window_.await(r);
      std::memcpy(data + part(k, r).begin * element, window_.slot_of(r), part(k, r).numel() * element);
    }
    window_.finish();
  };
  offer(0);
  for (std::int64_t k = 0; k < chunks; ++k) {
    sum_own(k);
    if (k + 1 < chunks) offer(k + 1);
    collect(k);
  }
}

void SharedMemoryCommunicator::do_broadcast(const at::Tensor& tensor, int root, const CallRecord& call) {
  std::byte* data = bytes_of(tensor);
  const std::size_t bytes = tensor.nbytes();
  if (bytes == 0) return;
  window_.begin(call);
  const std::size_t chunk = window_.slot_bytes();
  const bool own = window_.rank() == root;
  for (std::size_t at = 0; at < bytes; at += chunk) {
    const std::size_t n = std::min(chunk, bytes - at);
    std::byte* slot = window_.open();
    if (own) std::memcpy(slot, data + at, n);
    window_.post();
    window_.read();
    if (!own) {
      window_.await(root);
      stream_copy(data + at, window_.slot_of(root), n);
    } else if (at == 0) {
      window_.await_all();  // sees another root, too
    }
    window_.finish();
  }
}

void SharedMemoryCommunicator::do_barrier(const CallRecord& call) {
  window_.begin(call);
  window_.open();
  window_.post();
  window_.read();
  window_.await_all();
  window_.finish();
}

}  // namespace zero
