#include "zero/checkpoint/resume_states.h"

#include <cerrno>
#include <chrono>
#include <iomanip>
#include <limits>
#include <optional>
#include <thread>

#include "base/error.h"
#include "base/log.h"
#include "comm/agreement/agreement.h"
#include "comm/agreement/rank_list.h"
#include "comm/object_collectives.h"
#include "zero/checkpoint/saved_states.h"

namespace zero {
namespace {

/// The newest complete one before a step; -1: there is none.
std::int64_t newest_before(const CheckpointFolders& folders, std::int64_t limit) {
  for (const std::int64_t step : folders.steps())
    if (step < limit) return step;
  return -1;
}

constexpr auto patience = std::chrono::seconds(10);  // file systems of a network may show a new folder late

bool is_absent(const std::string& path, FileCalls& calls) {
  const int file = calls.open(path);
  if (file >= 0) calls.close(file);
  return file < 0 && errno == ENOENT;
}

/// InputError where ranks do not come to see the folder at all, which the first one does: it is not damaged, and none
/// before it is better. Collective.
void check_seen_by_all(const std::string& folder, FileCalls& calls, Communicator& ranks) {
  const std::string manifest = folder + "/manifest.json";
  bool absent = is_absent(manifest, calls);
  if (broadcast_number(ranks, absent, 0) == 0) {
    const auto end = std::chrono::steady_clock::now() + patience;
    while (absent && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      absent = is_absent(manifest, calls);
    }
  }
  const std::vector<std::int64_t> all = all_gather_number(ranks, absent);
  std::vector<int> without;
  for (std::size_t rank = 0; rank < all.size(); ++rank)
    if (all[rank] != 0) without.push_back(int(rank));
  if (all[0] == 0 && !without.empty())
    throw InputError(text(folder, " is absent on ", ranks_text(without),
                          ": every rank reads it, so it has to be on a file system that all nodes share: move "
                          "job.output_dir to one and name it there, or start all ranks on the node that has it"));
}

/// InputError where ranks read another checkpoint than the first one does. Its manifest has the marks of all its files.
/// Collective.
void check_same_checkpoint(const SavedStates& saved, Communicator& ranks) {
  const std::vector<std::int64_t> marks = all_gather_number(ranks, mark_of(saved.manifest()));
  std::vector<int> others;
  for (std::size_t rank = 1; rank < marks.size(); ++rank)
    if (marks[rank] != marks[0]) others.push_back(int(rank));
  if (!others.empty())
    throw InputError(text(saved.folder(), ": ", ranks_text(others), others.size() == 1 ? " reads" : " read",
                          " another checkpoint there than rank 0: all ranks must see one job.output_dir, on a file "
                          "system that all nodes share"));
}

}  // namespace

RunPosition resume_states(ModelStates& model, CheckpointFolders& folders, FileCalls& calls, Communicator& control,
                          const std::string& remedy) {
  Communicator& communicator = model.host();
  const auto begin = std::chrono::steady_clock::now();
  std::int64_t step = std::numeric_limits<std::int64_t>::max();
  std::string why;  // of the newest
  for (;;) {
    // File systems may show the ranks of other nodes another folder.
    step = broadcast_number(communicator, communicator.rank() == 0 ? newest_before(folders, step) : -1, 0);
    if (step < 0) throw InputError(folders.root() + ": no checkpoint there verifies" + why + ": " + remedy);
    RunPosition position;
    check_seen_by_all(folders.path(step), calls, control);
    std::string other;  // what another optimizer wrote is not damaged, and none before it is better
    try {
      std::optional<SavedStates> opened;
      all_or_none(control, [&] {
        opened.emplace(calls, folders.path(step));
        check_same_tensors(*opened, model);
      });
      check_same_checkpoint(*opened, control);
      all_or_none(control, [&] {
        SavedStates& saved = *opened;
        try {
          check_same_states(saved, model);
        } catch (const InputError& error) {
          other = error.what();
          return;
        }
        restore_states(saved, model);
        position = saved.manifest().position;
      });
    } catch (const AgreedError& error) {
      if (why.empty()) why = text(" (", error.what(), ")");
      if (communicator.rank() == 0)
        log_error("the checkpoint of step ", step, " does not verify: ", error.what(), ". The one before is taken");
      continue;
    }
    if (!other.empty()) throw InputError(other);
    model.resume(position.updates);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    log_info("resumed after step ", step, ", states read in ", std::fixed, std::setprecision(2), seconds.count(), " s");
    on_first(control, [&] {
      folders.set_aside_after(step, CheckpointFolders::Aside::damaged);
      if (const int removed = folders.sweep())
        log_info("removed ", removed, " unfinished checkpoint(s) from ", folders.root());
    });
    return position;
  }
}

}  // namespace zero
