#include "comm/mpi/message_transport.h"

#include <c10/core/ScalarType.h>

#include <algorithm>
#include <cstring>

#include "comm/sum_tree.h"

namespace zero {
namespace {

constexpr std::size_t small = 16 << 10;  // bytes: below it, one exchange of everything beats two of pieces

}  // namespace

MessageTransport::MessageTransport(Messages& messages, std::size_t chunk_bytes)
    : messages_(messages), rank_(messages.rank()), size_(messages.size()), chunk_bytes_(chunk_bytes) {}

std::byte* MessageTransport::inbox(int lane, int r, std::size_t bytes) {
  if (inboxes_[lane].size() < bytes * size_) inboxes_[lane].resize(bytes * size_);
  return inboxes_[lane].data() + bytes * r;
}

void MessageTransport::sum(const std::byte* own, int lane, std::size_t stride, std::byte* out, std::int64_t numel,
                           const ReduceTypes& types) {
  std::vector<const void*> inputs(size_);
  for (int r = 0; r < size_; ++r) inputs[r] = r == rank_ ? own : inbox(lane, r, stride);
  sum_tree({inputs, types.in}, {out, types.out, types.accumulate}, numel, types.sum);
}

/// A ring: every link carries each shard once.
void MessageTransport::all_gather(std::byte* full, const std::byte* shard, std::size_t bytes, const CallRecord& call) {
  if (full + rank_ * bytes != shard) std::memcpy(full + rank_ * bytes, shard, bytes);
  const int right = (rank_ + 1) % size_, left = (rank_ + size_ - 1) % size_;
  for (int step = 0; step + 1 < size_; ++step) {
    const int out = (rank_ + size_ - step) % size_, in = (left + size_ - step) % size_;
    messages_.recv(0, full + in * bytes, bytes, left);
    messages_.send(0, full + out * bytes, bytes, right);
    messages_.finish(0, call);
  }
}

void MessageTransport::reduce_scatter(std::byte* shard, const std::byte* full, std::int64_t numel,
                                      const ReduceTypes& types, const CallRecord& call) {
  const std::int64_t in_bytes = c10::elementSize(types.in), out_bytes = c10::elementSize(types.out);
  const std::int64_t chunk = std::max<std::int64_t>(1, std::min<std::int64_t>(numel, chunk_bytes_ / size_ / in_bytes));
  const std::size_t stride = chunk * in_bytes;
  const std::int64_t chunks = (numel + chunk - 1) / chunk;
  const auto start = [&](std::int64_t k) {
    const std::int64_t n = std::min(chunk, numel - k * chunk);
    const int lane = static_cast<int>(k % 2);
    for (int away = 1; away < size_; ++away) {
      const int to = (rank_ + away) % size_, from = (rank_ + size_ - away) % size_;
      messages_.recv(lane, inbox(lane, from, stride), n * in_bytes, from);
      messages_.send(lane, full + (to * numel + k * chunk) * in_bytes, n * in_bytes, to);
    }
  };
  if (chunks > 0) start(0);
  for (std::int64_t k = 0; k < chunks; ++k) {
    if (k + 1 < chunks) start(k + 1);
    const int lane = static_cast<int>(k % 2);
    messages_.finish(lane, call);
    sum(full + (rank_ * numel + k * chunk) * in_bytes, lane, stride, shard + k * chunk * out_bytes,
        std::min(chunk, numel - k * chunk), types);
  }
}

void MessageTransport::all_reduce_small(std::byte* data, std::int64_t numel, const ReduceTypes& types,
                                        const CallRecord& call) {
  const std::size_t bytes = numel * c10::elementSize(types.in);
  for (int away = 1; away < size_; ++away) {
    const int to = (rank_ + away) % size_, from = (rank_ + size_ - away) % size_;
    messages_.recv(0, inbox(0, from, bytes), bytes, from);
    messages_.send(0, data, bytes, to);
  }
  messages_.finish(0, call);
  sum(data, 0, bytes, data, numel, types);
}

void MessageTransport::all_reduce(std::byte* data, std::int64_t numel, const ReduceTypes& types,
                                  const CallRecord& call) {
  const std::int64_t element = c10::elementSize(types.in);
  if (static_cast<std::size_t>(numel * element) <= small) return all_reduce_small(data, numel, types, call);
  const std::int64_t chunk = chunk_bytes_ / element;
  for (std::int64_t at = 0; at < numel; at += chunk) {
    const std::int64_t n = std::min(chunk, numel - at);
    std::byte* base = data + at * element;
    const Piece own = piece_of(n, size_, rank_);
    const std::size_t stride = piece_of(n, size_, 0).numel() * element;
    for (int away = 1; away < size_; ++away) {
      const int to = (rank_ + away) % size_, from = (rank_ + size_ - away) % size_;
      const Piece theirs = piece_of(n, size_, to);
      messages_.recv(0, inbox(0, from, stride), own.numel() * element, from);
      messages_.send(0, base + theirs.begin * element, theirs.numel() * element, to);
    }
    messages_.finish(0, call);
    sum(base + own.begin * element, 0, stride, base + own.begin * element, own.numel(), types);
    for (int away = 1; away < size_; ++away) {
      const int to = (rank_ + away) % size_, from = (rank_ + size_ - away) % size_;
      const Piece theirs = piece_of(n, size_, from);
      messages_.recv(0, base + theirs.begin * element, theirs.numel() * element, from);
      messages_.send(0, base + own.begin * element, own.numel() * element, to);
    }
    messages_.finish(0, call);
  }
}

/// A binomial tree around the root.
void MessageTransport::broadcast(std::byte* data, std::size_t bytes, int root, const CallRecord& call) {
  const int place = (rank_ + size_ - root) % size_;
  int reach = 1;
  while (reach <= place) reach *= 2;
  if (place > 0) {
    messages_.recv(0, data, bytes, (place - reach / 2 + root) % size_);
    messages_.finish(0, call);
  }
  for (; place + reach < size_; reach *= 2) messages_.send(0, data, bytes, (place + reach + root) % size_);
  messages_.finish(0, call);
}

/// Everyone hears of everyone in log2(ranks) exchanges.
void MessageTransport::barrier(const CallRecord& call) {
  for (int reach = 1; reach < size_; reach *= 2) {
    std::byte in{}, out{};
    messages_.recv(0, &in, 1, (rank_ + size_ - reach) % size_);
    messages_.send(0, &out, 1, (rank_ + reach) % size_);
    messages_.finish(0, call);
  }
}

}  // namespace zero
