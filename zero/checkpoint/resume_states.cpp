#include "zero/checkpoint/resume_states.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <iomanip>
#include <limits>
#include <optional>
#include <vector>

#include "base/error.h"
#include "base/files/lookup.h"
#include "base/log.h"
#include "comm/agreement/agreement.h"
#include "comm/agreement/rank_list.h"
#include "comm/object_collectives.h"
#include "zero/checkpoint/damaged_checkpoint.h"
#include "zero/checkpoint/saved_states.h"

namespace zero {
namespace {

/// Rank 0's view of the folder. Other ranks have no view, because their file systems may show another folder.
struct Found {
  std::vector<std::int64_t> names;  // newest first
  std::vector<std::int64_t> steps;  // steps of the complete ones
};

Found find(const CheckpointFolders& folders, Communicator& control) {
  Found found;
  on_first(control, [&] { found = {folders.names(), folders.steps()}; });
  return found;
}

/// Returns the newest complete checkpoint before step `limit`; -1 if there is none. Collective.
std::int64_t newest_before(const Found& found, std::int64_t limit, Communicator& ranks) {
  const auto newest = std::ranges::find_if(found.steps, [&](std::int64_t step) { return step < limit; });
  return broadcast_number(ranks, newest == found.steps.end() ? -1 : *newest, 0);
}

constexpr auto patience = std::chrono::seconds(10);  // network file systems may show a new folder late
constexpr auto look_interval = std::chrono::milliseconds(50);

/// Throws InputError if some ranks never see the folder that rank 0 sees. The folder is not damaged, so an older
/// checkpoint would not help. Collective.
void check_seen_by_all(const std::string& folder, FileCalls& calls, Communicator& ranks) {
  bool absent = false;
  const auto look = [&] { absent = facts_of(folder + "/manifest.json", calls).kind == FileFacts::Kind::absent; };
  all_or_none(ranks, look);
  if (broadcast_number(ranks, absent, 0) == 0)
    all_or_none(ranks, [&] {
      for (auto left = patience / look_interval; absent && left > 0; --left) {
        calls.pause(look_interval);
        look();
      }
    });
  const std::vector<std::int64_t> all = all_gather_number(ranks, absent);
  std::vector<int> without;
  for (std::size_t rank = 0; rank < all.size(); ++rank)
    if (all[rank] != 0) without.push_back(int(rank));
  if (all[0] == 0 && !without.empty())
    throw InputError(text(folder, " is absent on ", ranks_text(without),
                          ": every rank reads it, so it has to be on a file system that all nodes share: move "
                          "job.output_dir to one and name it there, or start all ranks on the node that has it"));
}

/// Runs `work` on every rank. Returns the message of the first rank that finds the checkpoint damaged. Any other
/// exception is thrown on all ranks. Collective.
std::optional<std::string> agreed_damage_of(Communicator& control, const std::function<void()>& work) {
  std::string damage;
  all_or_none(control, [&] {
    try {
      work();
    } catch (const DamagedCheckpoint& error) {
      damage = error.what();
    }
  });
  for (const std::string& one : all_gather_texts(control, damage))
    if (!one.empty()) return one;
  return std::nullopt;
}

/// Throws InputError if some ranks read another checkpoint than rank 0. Comparing manifests is enough, since they have
/// the marks of all files. Collective.
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

/// The position and models of a resumed run, as the checkpoint has them.
struct Resumed {
  RunPosition position;
  std::vector<SavedModel> models;

  /// Counters continue from those of the checkpoint.
  void resume(const CheckpointModels& all) const {
    for (const CheckpointModel& model : all.models)
      model.states.resume(std::ranges::find(models, model.name, &SavedModel::name)->updates);
  }
};

/// Restores the models from a checkpoint folder and stores the run's position in `resumed`. Returns a description of
/// the damage, if any. Collective.
std::optional<std::string> restore(const CheckpointModels& models, const std::string& folder, FileCalls& calls,
                                   Communicator& control, Resumed& resumed) {
  std::optional<SavedStates> saved;
  auto damage = agreed_damage_of(control, [&] {
    saved.emplace(calls, folder);
    if (control.rank() == 0) saved->check_files();
    check_same_models(*saved, models);
    for (const CheckpointModel& model : models.models) check_same_tensors(*saved, model);
  });
  if (damage) return damage;
  check_same_checkpoint(*saved, control);
  damage = agreed_damage_of(control, [&] {
    for (const CheckpointModel& model : models.models) check_same_states(*saved, model);
    if (models.values) *models.values = saved->values();
    if (models.take_values) models.take_values();
  });
  if (damage) return damage;
  damage = agreed_damage_of(control, [&] { restore_models(*saved, models); });
  if (!damage) resumed = {saved->manifest().position, saved->models()};
  return damage;
}

/// Sets aside folders whose names the run's next checkpoints need. Rank 0 only.
void clear_way(CheckpointFolders& folders, const Found& found, std::int64_t step) {
  for (const std::int64_t other : found.names) {
    if (other <= step) continue;
    if (std::ranges::find(found.steps, other) == found.steps.end())
      log_error("the checkpoint of step ", other, " does not verify: ", folders.path(other),
                "/manifest.json: is missing. The one before is taken");
    folders.set_aside(other, CheckpointFolders::Aside::damaged);
  }
  if (const int removed = folders.sweep())
    log_info("removed ", removed, " unfinished checkpoint(s) from ", folders.root());
}

}  // namespace

RunPosition resume_states(const CheckpointModels& models, CheckpointFolders& folders, FileCalls& calls,
                          Communicator& control, const std::string& remedy) {
  const auto begin = std::chrono::steady_clock::now();
  on_first(control, [&] { folders.take_back(); });
  const Found found = find(folders, control);
  std::int64_t step = std::numeric_limits<std::int64_t>::max();
  std::string why;  // for the newest checkpoint
  Resumed resumed;
  for (;;) {
    step = newest_before(found, step, control);
    if (step < 0) throw InputError(folders.root() + ": no checkpoint there verifies" + why + ": " + remedy);
    check_seen_by_all(folders.path(step), calls, control);
    const std::optional<std::string> damage = restore(models, folders.path(step), calls, control, resumed);
    if (!damage) break;
    if (why.empty()) why = text(" (", *damage, ")");
    if (control.rank() == 0)
      log_error("the checkpoint of step ", step, " does not verify: ", *damage, ". The one before is taken");
  }
  resumed.resume(models);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  log_info("resumed after step ", step, ", states read in ", std::fixed, std::setprecision(2), seconds.count(), " s");
  on_first(control, [&] { clear_way(folders, found, step); });
  return resumed.position;
}

}  // namespace zero
