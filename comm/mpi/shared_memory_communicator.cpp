#include "comm/mpi/shared_memory_communicator.h"

#include <c10/core/ScalarType.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/log.h"
#include "comm/mpi/non_temporal_copy.h"
#include "comm/part_offsets.h"
#include "comm/sum_tree.h"

namespace zero {
namespace {

constexpr std::int64_t small = 16 << 10;  // bytes: below it, every rank sums everything in one round

/// An all_to_all: each rank's output is one stream of bytes through its slots. First comes a table of the element
/// counts it sends to and expects from each rank. The parts for the ranks after it follow in rotated order, so that all
/// ranks always have something to read.
struct StreamPart {
  std::int64_t at = 0, bytes = 0;  // position in the stream
  std::byte* memory = nullptr;     // source or destination

  /// Calls f(position in the slot, memory, bytes) for the share that belongs to round k, if any.
  template <class F>
  void in_round(std::int64_t k, std::int64_t slot_bytes, F f) const {
    const std::int64_t begin = std::max(at, k * slot_bytes), end = std::min(at + bytes, (k + 1) * slot_bytes);
    if (begin < end) f(begin - k * slot_bytes, memory + (begin - at), end - begin);
  }
};

std::int64_t table_bytes(int ranks) {
  return (2 * ranks * static_cast<std::int64_t>(sizeof(std::int64_t)) + 63) / 64 * 64;
}

using CountTables = std::vector<std::vector<std::int64_t>>;  // by rank: sent to each, then expected from each

/// The bytes of rank r's stream before its part for rank `to`. If `to` == r, all its bytes.
std::int64_t stream_bytes(const CountTables& tables, int r, int to, std::int64_t element) {
  const int ranks = static_cast<int>(tables.size());
  std::int64_t bytes = table_bytes(ranks);
  for (int other = (r + 1) % ranks; other != to; other = (other + 1) % ranks) bytes += tables[r][other] * element;
  return bytes;
}

void check_counts(const CountTables& tables, const CallRecord& call, const PointToPoint& group) {
  const int ranks = static_cast<int>(tables.size());
  for (int from = 0; from < ranks; ++from)
    for (int to = 0; to < ranks; ++to)
      if (tables[from][to] != tables[to][ranks + from])
        throw Error(text("mismatch of collectives: in ", call.describe(), " ", group.name(from), " sends ",
                         tables[from][to], " to ", group.name(to), ", which expects ", tables[to][ranks + from]));
}

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

/// For each chunk, every rank sums one piece, then all ranks read all pieces.
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
      window_.await_all();  // also detects another root
    }
    window_.finish();
  }
}

/// Only the first round shows the number of rounds.
void SharedMemoryCommunicator::do_all_to_all(const at::Tensor& out, const std::vector<std::int64_t>& out_counts,
                                             const at::Tensor& in, const std::vector<std::int64_t>& in_counts,
                                             const CallRecord& call) {
  const int ranks = window_.size(), self = window_.rank();
  const std::int64_t element = in.element_size(), slot_bytes = window_.slot_bytes();
  ZERO_CHECK(table_bytes(ranks) <= slot_bytes, text("slots of ", slot_bytes, " bytes for ", ranks, " ranks"));
  const std::vector<std::int64_t> to_offsets = part_offsets(in_counts), from_offsets = part_offsets(out_counts);
  std::byte *target = bytes_of(out), *source = bytes_of(in);
  CountTables tables(ranks);
  tables[self] = in_counts;
  tables[self].insert(tables[self].end(), out_counts.begin(), out_counts.end());
  std::vector<StreamPart> outgoing, incoming;  // in stream order
  for (int away = 1; away < ranks; ++away) {
    const int to = (self + away) % ranks;
    outgoing.push_back(
        {stream_bytes(tables, self, to, element), in_counts[to] * element, source + to_offsets[to] * element});
  }
  const auto write = [&](std::int64_t k) {
    std::byte* slot = window_.open();
    if (k == 0) std::memcpy(slot, tables[self].data(), tables[self].size() * sizeof(std::int64_t));
    for (const StreamPart& part : outgoing)
      part.in_round(k, slot_bytes, [&](std::int64_t place, const std::byte* memory, std::int64_t bytes) {
        std::memcpy(slot + place, memory, bytes);
      });
    window_.post();
  };
  window_.begin(call);
  write(0);
  if (in_counts[self] > 0)
    stream_copy(target + from_offsets[self] * element, source + to_offsets[self] * element, in_counts[self] * element);
  window_.read();
  window_.await_all();
  for (int r = 0; r < ranks; ++r) {
    const auto* table = reinterpret_cast<const std::int64_t*>(window_.slot_of(r));
    tables[r].assign(table, table + 2 * ranks);
  }
  check_counts(tables, call, messages());
  std::int64_t longest = 0;
  for (int r = 0; r < ranks; ++r) longest = std::max(longest, stream_bytes(tables, r, r, element));
  for (int away = 1; away < ranks; ++away) {
    const int r = (self + ranks - away) % ranks;
    incoming.push_back(
        {stream_bytes(tables, r, self, element), out_counts[r] * element, target + from_offsets[r] * element});
  }
  const std::int64_t rounds = (longest + slot_bytes - 1) / slot_bytes;
  for (std::int64_t k = 0; k < rounds; ++k) {
    if (k + 1 < rounds) write(k + 1);
    if (k > 0) window_.read();
    for (int away = 1; away < ranks; ++away) {
      const int r = (self + ranks - away) % ranks;
      incoming[away - 1].in_round(k, slot_bytes, [&](std::int64_t place, std::byte* memory, std::int64_t bytes) {
        window_.await(r);
        stream_copy(memory, window_.slot_of(r) + place, bytes);
      });
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
