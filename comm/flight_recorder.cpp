#include "comm/flight_recorder.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <sstream>

#include "base/error.h"
#include "base/log.h"
#include "comm/object_collectives.h"
#include "comm/shared_segment.h"

namespace zero {

struct FlightRecorder::Record {
  std::atomic<std::uint64_t> issued, done;
  std::array<char, 120> last_call;  // for reports only: may be torn while its rank writes
};

struct FlightRecorder::Entry {
  int rank = 0;
  std::uint64_t issued = 0, done = 0;
  std::string last_call;
};

std::vector<std::string> node_names_of_ranks(Communicator& host) {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return all_gather_texts(host, name.data());
}

bool is_one_node(const std::vector<std::string>& nodes) {
  return std::all_of(nodes.begin(), nodes.end(), [&](const std::string& node) { return node == nodes.front(); });
}

FlightRecorder::FlightRecorder(Communicator& host, FlightRecorderOptions options)
    : reports_(std::move(options.reports)),
      nodes_(options.nodes.empty() ? node_names_of_ranks(host) : std::move(options.nodes)) {
  ZERO_CHECK(int(nodes_.size()) == host.size(), "a node's name for each rank");
  const std::string& own = nodes_[host.rank()];
  for (int r = 0; r < host.size(); ++r) {
    if (nodes_[r] != own) continue;
    if (r == host.rank()) own_record_ = int(local_ranks_.size());
    local_ranks_.push_back(r);
  }
  const auto node = host.split(local_ranks_);
  const std::size_t bytes = sizeof(Record) * local_ranks_.size();
  const auto attempt = [&](auto make) {
    try {
      segment_ = std::make_unique<SharedSegment>(make());
    } catch (const Error& error) {
      log_warning("a rank that is missing in a collective will not be named: ", error.what());
    }
  };
  if (node->rank() == 0 && node->size() > 1) attempt([&] { return SharedSegment::create(bytes); });
  const std::string name = broadcast_text(*node, segment_ ? segment_->name() : "", 0);
  if (node->rank() != 0 && !name.empty()) attempt([&] { return SharedSegment::open(name, bytes); });
  node->barrier({Phase::setup});
  if (node->rank() == 0 && segment_) segment_->unlink();
}

FlightRecorder::~FlightRecorder() = default;

FlightRecorder::Record& FlightRecorder::record_of(int local_rank) const {
  return reinterpret_cast<Record*>(segment_->data())[local_rank];
}

void FlightRecorder::record(const CallRecord& call) {
  ++issued_;
  last_call_ = call.describe();
  if (!segment_) return;
  Record& own = record_of(own_record_);
  own.last_call.fill(0);
  std::memcpy(own.last_call.data(), last_call_.data(), std::min(last_call_.size(), own.last_call.size() - 1));
  own.issued.store(issued_, std::memory_order_release);
}

void FlightRecorder::complete() {
  ++done_;
  if (segment_) record_of(own_record_).done.store(done_, std::memory_order_release);
}

std::vector<FlightRecorder::Entry> FlightRecorder::entries_of_this_node() const {
  std::vector<Entry> entries;
  for (int i = 0; segment_ && i < int(local_ranks_.size()); ++i) {
    const std::uint64_t issued = record_of(i).issued.load(std::memory_order_acquire);
    char last_call[sizeof(Record::last_call)];
    std::memcpy(last_call, record_of(i).last_call.data(), sizeof last_call);
    last_call[sizeof last_call - 1] = 0;
    entries.push_back({local_ranks_[i], issued, record_of(i).done.load(std::memory_order_acquire), last_call});
  }
  return entries;
}

/// A rank's backlog relative to this one; empty if none. A device that hangs lags even if its host has issued all
/// calls.
std::string FlightRecorder::lag_of(const Entry& entry) const {
  if (entry.issued < issued_)
    return text("is missing, its last call was ", entry.last_call.empty() ? "none" : entry.last_call);
  if (entry.issued == issued_ && entry.done < done_)
    return text("has issued it, but its device is ", done_ - entry.done, " calls behind");
  return {};
}

std::string FlightRecorder::who_is_behind() const {
  std::string found;
  for (const Entry& entry : entries_of_this_node())
    if (const std::string lag = lag_of(entry); entry.rank != local_ranks_[own_record_] && !lag.empty())
      found += text(found.empty() ? "" : "; ", "rank ", entry.rank, ' ', lag);
  if (local_ranks_.size() < nodes_.size() && !reports_)
    found += text(found.empty() ? "no rank of this node is behind: the missing one is on another node"
                                : "; ranks of other nodes are not seen from here");
  return found;
}

std::string FlightRecorder::ask_other_nodes(std::chrono::duration<double> patience) const {
  std::vector<int> others;
  for (int r = 0; r < int(nodes_.size()); ++r)
    if (nodes_[r] != nodes_[local_ranks_.front()]) others.push_back(r);
  if (others.empty() || !reports_) return {};

  // One line per rank of the node: its number, issued calls, completed calls, and the last one in words.
  std::vector<Entry> own = entries_of_this_node();
  if (own.empty()) own.push_back({local_ranks_[own_record_], issued_, done_, last_call_});
  std::string told;
  for (const Entry& entry : own)
    told += text(entry.rank, ' ', entry.issued, ' ', entry.done, ' ',
                 entry.last_call.empty() ? "none" : entry.last_call, '\n');

  std::map<int, Entry> heard;
  for (const std::string& answer : reports_->exchange(told, others, patience)) {
    std::istringstream lines(answer);
    for (Entry entry;
         lines >> entry.rank >> entry.issued >> entry.done && std::getline(lines >> std::ws, entry.last_call);) {
      Entry& known = heard[entry.rank];
      if (entry.issued >= known.issued) known = entry;
    }
  }

  std::string found;
  const auto say = [&](const auto&... words) { found += text(found.empty() ? "" : "; ", words...); };
  std::map<std::string, std::string> silent;  // node -> its silent ranks
  for (int r : others) {
    const auto entry = heard.find(r);
    if (entry == heard.end())
      silent[nodes_[r]] += text(silent[nodes_[r]].empty() ? "" : ", ", r);
    else if (const std::string lag = lag_of(entry->second); !lag.empty())
      say("rank ", r, " on node ", nodes_[r], ' ', lag);
  }
  for (const auto& [node, ranks] : silent)
    say("no answer from node ", node, " (ranks ", ranks, ") within ", patience.count(), " s");
  return found;
}

}  // namespace zero
