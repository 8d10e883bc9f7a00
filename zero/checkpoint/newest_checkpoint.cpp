#include "zero/checkpoint/newest_checkpoint.h"

#include <exception>
#include <utility>

#include "base/error.h"
#include "zero/checkpoint/damaged_checkpoint.h"
#include "zero/checkpoint/saved_states.h"

namespace zero {
namespace {

constexpr int most_looks = 5;

NewestCheckpoint look(const CheckpointFolders& folders, std::vector<std::int64_t> incomplete, FileCalls& calls) {
  const std::vector<CheckpointFolders::Complete> complete = folders.resumable();
  for (const auto& [step, folder] : complete) std::erase(incomplete, step);
  NewestCheckpoint found;
  const auto tell_incomplete = [&](std::int64_t before) {
    for (const std::int64_t step : incomplete)
      if (step > before) found.damages.push_back({step, folders.path(step) + "/manifest.json: is missing"});
  };
  for (const auto& [step, folder] : complete) {
    try {
      const SavedStates saved(calls, folder);
      saved.check_files();
      tell_incomplete(step);
      found.whole = {saved.manifest(), folder};
      return found;
    } catch (const DamagedCheckpoint& error) {
      found.damages.push_back({step, error.what()});
    }
  }
  tell_incomplete(-1);
  return found;
}

}  // namespace

void NewestCheckpoint::take(NewestCheckpoint other) {
  whole = std::move(other.whole);
  damages.insert(damages.end(), other.damages.begin(), other.damages.end());
  std::erase_if(damages, [&](const Damage& damage) { return damage.step <= step(); });
}

NewestCheckpoint newest_checkpoint(const CheckpointFolders& folders, FileCalls& calls) {
  for (int looks = 1;; ++looks) {
    const std::vector<std::int64_t> names = folders.names();
    NewestCheckpoint found;
    std::exception_ptr refusal;
    try {
      found = look(folders, names, calls);
    } catch (const Error&) {
      refusal = std::current_exception();
    }
    if (looks < most_looks && folders.names() != names) continue;
    if (refusal) std::rethrow_exception(refusal);
    return found;
  }
}

}  // namespace zero
