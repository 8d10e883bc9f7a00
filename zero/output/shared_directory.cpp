#include "zero/output/shared_directory.h"

#include <unistd.h>

#include <chrono>

#include "base/error.h"
#include "base/files/lookup.h"
#include "comm/agreement/agreement.h"
#include "comm/agreement/rank_list.h"
#include "comm/object_collectives.h"

namespace zero {
namespace {

enum Sight : std::int64_t { seen, another, absent };
constexpr auto patience = std::chrono::seconds(10);  // network file systems may show a new file late
constexpr auto look_interval = std::chrono::milliseconds(50);

bool is_visible(const std::string& path, FileCalls& calls) {
  return facts_of(path, calls).kind != FileFacts::Kind::absent;
}

bool appears(const std::string& path, FileCalls& calls) {
  for (auto left = patience / look_interval; left > 0; --left) {
    if (is_visible(path, calls)) return true;
    calls.pause(look_interval);
  }
  return is_visible(path, calls);
}

void make_empty(const std::string& path, FileCalls& calls) {
  const int file = calls.create(path, 0644, /*direct=*/false);
  check_call(file, path, "made");
  calls.close(file);
}

}  // namespace

std::optional<std::string> why_not_shared(const std::string& directory, Communicator& group, FileCalls& calls) {
  const std::int64_t number =
      broadcast_number(group, std::chrono::system_clock::now().time_since_epoch().count() ^ ::getpid(), 0);
  const std::string probe = directory + "/shared-" + std::to_string(number);
  on_first(group, [&] { make_empty(probe, calls); });
  std::int64_t mine = absent;
  const std::optional<std::string> failure = agreed_failure_of([&] {
    all_or_none(group, [&] { mine = appears(probe, calls) ? seen : is_visible(directory, calls) ? another : absent; });
  });
  const std::vector<std::int64_t> all = all_gather_number(group, mine);
  if (group.rank() == 0) calls.remove(probe);
  if (failure) throw InputError(*failure);
  std::string words;
  for (const auto& [what, is] : {std::pair{absent, "absent on "}, {another, "another one on "}}) {
    std::vector<int> ranks;
    for (std::size_t rank = 0; rank < all.size(); ++rank)
      if (all[rank] == what) ranks.push_back(int(rank));
    if (!ranks.empty()) words += (words.empty() ? "is " : " and ") + (is + ranks_text(ranks));
  }
  return words.empty() ? std::nullopt : std::optional(words);
}

void require_shared(const std::string& directory, Communicator& group, FileCalls& calls) {
  if (const auto why = why_not_shared(directory, group, calls))
    throw InputError(
        "job.output_dir = \"" + directory + "\" " + *why +
        ", and every rank writes its part of a checkpoint there: name a directory on a file system that all "
        "nodes share, by a path that is the same on all");
}

}  // namespace zero
