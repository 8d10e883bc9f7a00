#include "zero/output/shared_directory.h"

#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/error.h"
#include "comm/agreement/agreement.h"
#include "comm/agreement/rank_list.h"
#include "comm/object_collectives.h"

namespace zero {
namespace {

constexpr std::int64_t seen = 0, another = 1, absent = 2;
constexpr auto patience = std::chrono::seconds(10);  // file systems of a network may show a new file late

bool appears(const std::string& path) {
  const auto end = std::chrono::steady_clock::now() + patience;
  std::error_code none;
  while (!std::filesystem::exists(path, none)) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return true;
}

}  // namespace

std::optional<std::string> why_not_shared(const std::string& directory, Communicator& group) {
  const std::int64_t number =
      broadcast_number(group, std::chrono::system_clock::now().time_since_epoch().count() ^ ::getpid(), 0);
  const std::string probe = directory + "/shared-" + std::to_string(number);
  on_first(group, [&] {
    if (!std::ofstream(probe)) throw Error(probe + ": cannot be written");
  });
  std::error_code none;
  const std::int64_t mine = appears(probe) ? seen : std::filesystem::exists(directory, none) ? another : absent;
  const std::vector<std::int64_t> all = all_gather_number(group, mine);
  if (group.rank() == 0) std::filesystem::remove(probe, none);
  std::string words;
  for (const auto& [what, is] : {std::pair{absent, "absent on "}, {another, "another one on "}}) {
    std::vector<int> ranks;
    for (std::size_t rank = 0; rank < all.size(); ++rank)
      if (all[rank] == what) ranks.push_back(int(rank));
    if (!ranks.empty()) words += (words.empty() ? "is " : " and ") + (is + ranks_text(ranks));
  }
  return words.empty() ? std::nullopt : std::optional(words);
}

void require_shared(const std::string& directory, Communicator& group) {
  if (const auto why = why_not_shared(directory, group))
    throw InputError(
        "job.output_dir = \"" + directory + "\" " + *why +
        ", and every rank writes its part of a checkpoint there: name a directory on a file system that all "
        "nodes share, by a path that is the same on all");
}

}  // namespace zero
