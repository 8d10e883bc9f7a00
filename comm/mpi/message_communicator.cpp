#include "comm/mpi/message_communicator.h"

#include <c10/core/ScalarType.h>

#include <algorithm>
#include <cstring>

#include "comm/part_offsets.h"
#include "comm/sum_tree.h"

namespace zero {
namespace {

constexpr std::size_t chunk_bytes = std::size_t{4} << 20;
constexpr std::size_t small = 16 << 10;  // bytes: below it, one exchange of everything is faster than two of pieces

}  // namespace

std::byte* MessageCommunicator::inbox(int lane, int r, std::size_t bytes) {
  if (inboxes_[lane].size() < bytes * size()) inboxes_[lane].resize(bytes * size());
  return inboxes_[lane].data() + bytes * r;
}

void MessageCommunicator::sum(const std::byte* own, int lane, std::size_t stride, std::byte* out, std::int64_t numel,
                              const ReduceTypes& types) {
  std::vector<const void*> inputs(size());
  for (int r = 0; r < size(); ++r) inputs[r] = r == rank() ? own : inbox(lane, r, stride);
  sum_tree({inputs, types.in}, {out, types.out, types.accumulate}, numel, types.sum);
}

/// A ring: each shard crosses every link once.
void MessageCommunicator::do_all_gather(const at::Tensor& whole, const at::Tensor& shard, const CallRecord& call) {
  messages().begin(call);
  std::byte *full = bytes_of(whole), *own = bytes_of(shard);
  const std::size_t bytes = shard.nbytes();
  if (full + rank() * bytes != own && bytes > 0) std::memcpy(full + rank() * bytes, own, bytes);
  const int right = (rank() + 1) % size(), left = (rank() + size() - 1) % size();
  for (int step = 0; step + 1 < size(); ++step) {
    const int out = (rank() + size() - step) % size(), in = (left + size() - step) % size();
    messages().recv(0, full + in * bytes, bytes, left);
    messages().send(0, full + out * bytes, bytes, right);
    messages().finish(0);
  }
}

void MessageCommunicator::do_reduce_scatter(const at::Tensor& part, const at::Tensor& whole, ReduceOptions options,
                                            const CallRecord& call) {
  messages().begin(call);
  const std::byte* full = bytes_of(whole);
  std::byte* shard = bytes_of(part);
  const std::int64_t numel = part.numel();
  const ReduceTypes types = ReduceTypes::of(whole, part, options);
  const std::int64_t in_bytes = c10::elementSize(types.in), out_bytes = c10::elementSize(types.out);
  const std::int64_t chunk = std::max<std::int64_t>(1, std::min<std::int64_t>(numel, chunk_bytes / size() / in_bytes));
  const std::size_t stride = chunk * in_bytes;
  const std::int64_t chunks = (numel + chunk - 1) / chunk;
  const auto start = [&](std::int64_t k) {
    const std::int64_t n = std::min(chunk, numel - k * chunk);
    const int lane = static_cast<int>(k % 2);
    for (int away = 1; away < size(); ++away) {
      const int to = (rank() + away) % size(), from = (rank() + size() - away) % size();
      messages().recv(lane, inbox(lane, from, stride), n * in_bytes, from);
      messages().send(lane, full + (to * numel + k * chunk) * in_bytes, n * in_bytes, to);
    }
  };
  if (chunks > 0) start(0);
  for (std::int64_t k = 0; k < chunks; ++k) {
    if (k + 1 < chunks) start(k + 1);
    const int lane = static_cast<int>(k % 2);
    messages().finish(lane);
    sum(full + (rank() * numel + k * chunk) * in_bytes, lane, stride, shard + k * chunk * out_bytes,
        std::min(chunk, numel - k * chunk), types);
  }
}

void MessageCommunicator::all_reduce_small(std::byte* data, std::int64_t numel, const ReduceTypes& types) {
  const std::size_t bytes = numel * c10::elementSize(types.in);
  for (int away = 1; away < size(); ++away) {
    const int to = (rank() + away) % size(), from = (rank() + size() - away) % size();
    messages().recv(0, inbox(0, from, bytes), bytes, from);
    messages().send(0, data, bytes, to);
  }
  messages().finish(0);
  sum(data, 0, bytes, data, numel, types);
}

void MessageCommunicator::do_all_reduce(const at::Tensor& tensor, ReduceOptions options, const CallRecord& call) {
  messages().begin(call);
  std::byte* data = bytes_of(tensor);
  const std::int64_t numel = tensor.numel();
  const ReduceTypes types = ReduceTypes::of(tensor, tensor, options);
  const std::int64_t element = c10::elementSize(types.in);
  if (static_cast<std::size_t>(numel * element) <= small) return all_reduce_small(data, numel, types);
  const std::int64_t chunk = chunk_bytes / element;
  for (std::int64_t at = 0; at < numel; at += chunk) {
    const std::int64_t n = std::min(chunk, numel - at);
    std::byte* base = data + at * element;
    const Piece own = piece_of(n, size(), rank());
    const std::size_t stride = piece_of(n, size(), 0).numel() * element;
    for (int away = 1; away < size(); ++away) {
      const int to = (rank() + away) % size(), from = (rank() + size() - away) % size();
      const Piece theirs = piece_of(n, size(), to);
      messages().recv(0, inbox(0, from, stride), own.numel() * element, from);
      messages().send(0, base + theirs.begin * element, theirs.numel() * element, to);
    }
    messages().finish(0);
    sum(base + own.begin * element, 0, stride, base + own.begin * element, own.numel(), types);
    for (int away = 1; away < size(); ++away) {
      const int to = (rank() + away) % size(), from = (rank() + size() - away) % size();
      const Piece theirs = piece_of(n, size(), from);
      messages().recv(0, base + theirs.begin * element, theirs.numel() * element, from);
      messages().send(0, base + own.begin * element, own.numel() * element, to);
    }
    messages().finish(0);
  }
}

/// A binomial tree from the root.
void MessageCommunicator::do_broadcast(const at::Tensor& tensor, int root, const CallRecord& call) {
  messages().begin(call);
  std::byte* data = bytes_of(tensor);
  const std::size_t bytes = tensor.nbytes();
  const int place = (rank() + size() - root) % size();
  int reach = 1;
  while (reach <= place) reach *= 2;
  if (place > 0) {
    messages().recv(0, data, bytes, (place - reach / 2 + root) % size());
    messages().finish(0);
  }
  for (; place + reach < size(); reach *= 2) messages().send(0, data, bytes, (place + reach + root) % size());
  messages().finish(0);
}

/// Sends empty parts too, so that a mismatch shows at once.
void MessageCommunicator::do_all_to_all(const at::Tensor& out, const std::vector<std::int64_t>& out_counts,
                                        const at::Tensor& in, const std::vector<std::int64_t>& in_counts,
                                        const CallRecord& call) {
  messages().begin(call);
  const std::int64_t element = in.element_size();
  const std::vector<std::int64_t> to_offsets = part_offsets(in_counts), from_offsets = part_offsets(out_counts);
  std::byte *target = bytes_of(out), *source = bytes_of(in);
  for (int away = 1; away < size(); ++away) {
    const int to = (rank() + away) % size(), from = (rank() + size() - away) % size();
    messages().recv(0, target + from_offsets[from] * element, out_counts[from] * element, from);
    messages().send(0, source + to_offsets[to] * element, in_counts[to] * element, to);
  }
  if (in_counts[rank()] > 0)
    std::memcpy(target + from_offsets[rank()] * element, source + to_offsets[rank()] * element,
                in_counts[rank()] * element);
  messages().finish(0);
}

/// Every rank hears of all others after log2(ranks) exchanges.
void MessageCommunicator::do_barrier(const CallRecord& call) {
  messages().begin(call);
  for (int reach = 1; reach < size(); reach *= 2) {
    std::byte in{}, out{};
    messages().recv(0, &in, 1, (rank() + size() - reach) % size());
    messages().send(0, &out, 1, (rank() + reach) % size());
    messages().finish(0);
  }
}

}  // namespace zero
