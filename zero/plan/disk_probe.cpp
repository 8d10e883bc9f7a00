#include "zero/plan/disk_probe.h"

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/files/scratch_folder.h"
#include "offload/disk/disk_tier.h"

namespace zero {
namespace {

constexpr std::int64_t most_elements = 16 << 20;  // 192 MiB of states: several times a tier's buffers
constexpr std::int64_t node_elements = 64 << 20;  // of all ranks: 768 MiB
const std::vector<StateSpec> probe_states{{"master"}, {"exp_avg"}, {"exp_avg_sq"}};

/// The seconds of a visit that all ranks make at once: those of the slowest.
class SharedVisit {
 public:
  explicit SharedVisit(int ranks) : ready_(ranks) {}

  /// Every rank calls this the same number of times, also one whose store could not be made (null).
  void run(StateStore* store, StateAccess access, std::atomic<double>& slowest) {
    ready_.arrive_and_wait();
    const auto begin = std::chrono::steady_clock::now();
    if (store) store->for_each_chunk(access, [](const StateChunk&) {});
    const double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    for (double known = slowest; took > known && !slowest.compare_exchange_weak(known, took);) {
    }
  }

 private:
  std::barrier<> ready_;
};

}  // namespace

DiskRates measure_disk(const std::string& folder, int ranks) {
  const std::int64_t elements = std::min(most_elements, node_elements / ranks);
  std::optional<ScratchFolder> own;
  try {
    own.emplace("plan", ScratchOptions{.place = folder});
  } catch (const Error&) {
    return {};
  }
  std::atomic<double> first = 0, write = 0, update = 0, read = 0;
  std::atomic<bool> failed = false;
  SharedVisit visit(ranks);
  const auto measure = [&](int rank) {
    std::shared_ptr<DiskTier> tier;
    std::unique_ptr<StateStore> store;
    const auto guarded = [&](const auto& act) {
      try {
        act();
      } catch (const std::exception&) {
        failed = true;
        store.reset();
      }
    };
    guarded([&] {
      DiskTierOptions options;
      options.directory = own->path();
      options.rank = rank;
      tier = DiskTier::create(options);
      store = tier->make_store("probe", elements, probe_states);
    });
    // The first visit makes the file system find blocks, which a run does once.
    for (const auto& [access, slowest] :
         {std::pair(StateAccess::write, &first), std::pair(StateAccess::write, &write),
          std::pair(StateAccess::read_write, &update), std::pair(StateAccess::read, &read)})
      guarded([&, access = access, slowest = slowest] { visit.run(store.get(), access, *slowest); });
  };
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < ranks; ++rank) threads.emplace_back(measure, rank);
  }
  if (failed) return {};
  const double bytes = double(state_bytes(probe_states, elements));
  return {bytes / read, bytes / write, bytes / update};
}

}  // namespace zero
