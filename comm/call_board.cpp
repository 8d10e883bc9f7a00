#include "comm/call_board.h"

#include <ATen/ATen.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>

#include "comm/error.h"
#include "comm/log.h"
#include "comm/shared_segment.h"

namespace zero {

struct CallBoard::Place {
  std::atomic<std::uint64_t> issued;
  std::array<char, 120> words;  // may be torn while its rank writes: for people only
};

std::vector<int> nodes_of_ranks(Communicator& host) {
  constexpr int width = 256;
  const at::Tensor mine = at::zeros({width}, at::kByte), all = at::empty({width * host.size()}, at::kByte);
  gethostname(reinterpret_cast<char*>(mine.data_ptr<std::uint8_t>()), width - 1);
  host.all_gather_into(all, mine, {Phase::setup});
  const char* names = reinterpret_cast<const char*>(all.const_data_ptr<std::uint8_t>());
  std::vector<int> nodes;
  for (int r = 0; r < host.size(); ++r) {
    int first = 0;
    while (std::strcmp(names + first * width, names + r * width) != 0) ++first;
    nodes.push_back(first == r ? (nodes.empty() ? 0 : *std::max_element(nodes.begin(), nodes.end()) + 1) : nodes[first]);
  }
  return nodes;
}

CallBoard::CallBoard(Communicator& host) : ranks_(host.size()) {
  const std::vector<int> nodes = nodes_of_ranks(host);
  for (int r = 0; r < host.size(); ++r) {
    if (nodes[r] != nodes[host.rank()]) continue;
    if (r == host.rank()) own_place_ = int(local_ranks_.size());
    local_ranks_.push_back(r);
  }
  const auto node = host.split(nodes[host.rank()], host.rank());
  const std::size_t bytes = sizeof(Place) * local_ranks_.size();
  const at::Tensor name = at::zeros({64}, at::kByte);
  char* letters = reinterpret_cast<char*>(name.data_ptr<std::uint8_t>());
  const auto attempt = [&](auto make) {
    try {
      segment_ = std::make_unique<SharedSegment>(make());
    } catch (const Error& error) {
      log_warning("a rank that is missing in a collective will not be named: ", error.what());
    }
  };
  if (node->rank() == 0 && node->size() > 1) attempt([&] { return SharedSegment::create(bytes); });
  if (segment_) std::strncpy(letters, segment_->name().c_str(), 63);
  node->broadcast(name, 0, {Phase::setup});
  if (node->rank() != 0 && letters[0]) attempt([&] { return SharedSegment::open(letters, bytes); });
  node->barrier({Phase::setup});
  if (node->rank() == 0 && segment_) segment_->unlink();
}

CallBoard::~CallBoard() = default;

CallBoard::Place& CallBoard::place(int local_rank) const { return reinterpret_cast<Place*>(segment_->data())[local_rank]; }

void CallBoard::publish(const CallRecord& call) {
  ++issued_;
  if (!segment_) return;
  Place& own = place(own_place_);
  const std::string words = call.describe();
  own.words.fill(0);
  std::memcpy(own.words.data(), words.data(), std::min(words.size(), own.words.size() - 1));
  own.issued.store(issued_, std::memory_order_release);
}

std::string CallBoard::who_is_behind() const {
  std::string found;
  if (segment_) {
    for (std::size_t i = 0; i < local_ranks_.size(); ++i) {
      if (int(i) == own_place_) continue;
      const std::uint64_t issued = place(int(i)).issued.load(std::memory_order_acquire);
      if (issued >= issued_) continue;
      char words[sizeof(Place::words)];
      std::memcpy(words, place(int(i)).words.data(), sizeof words);
      words[sizeof words - 1] = 0;
      found += text(found.empty() ? "" : "; ", "rank ", local_ranks_[i], " is missing, its last call was ", words[0] ? words : "none");
    }
  }
  if (int(local_ranks_.size()) < ranks_)
    found += text(found.empty() ? "no rank of this node is behind: the missing one is on another node" : "; ranks of other nodes are not seen from here");
  return found;
}

}  // namespace zero
