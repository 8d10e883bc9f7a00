#include "zero/train/spare_states.h"

#include <filesystem>

#include "base/error.h"
#include "base/files/lookup.h"
#include "comm/agreement/agreement.h"
#include "zero/checkpoint/spare_checkpoints.h"

namespace zero {
namespace {

namespace fs = std::filesystem;

/// Returns the output directory that a checkpoint names; empty if this version cannot read the checkpoint's
/// configuration.
std::string output_of(const RunDescription& then) {
  try {
    const Config config = parse_config(then.configuration, "the checkpoint's configuration");
    return (fs::path(then.directory) / config.job.output_dir).string();
  } catch (const InputError&) {
    return "";
  }
}

/// A run that was started over has the same directory and another id. A copy of the directory has the same id. A
/// directory that was moved, for example to a larger disk, also has the same id, but nothing is left where the
/// checkpoint was made.
Owner owner_of(const RunDescription& then, const RunDescription& now, const std::string& output) {
  if (then.id != now.id) return Owner::another_run;
  const std::string place = output_of(then);
  if (is_same_place(place, output)) return Owner::this_run;
  if (now.id.empty()) return Owner::another_run;  // both runs are of a version without ids
  return place.empty() || is_there(place) ? Owner::unknown : Owner::this_run;
}

OwnerOf owner_for(const RunDescription& now, const Config& config) {
  return [&now, output = config.job.output_dir](const RunDescription& then) { return owner_of(then, now, output); };
}

}  // namespace

std::vector<std::string> spare_places(const Config& config) {
  std::vector<std::string> places;
  if (!config.offload.nvme_dir.empty()) places.push_back(config.offload.nvme_dir);
  std::error_code none;
  for (const fs::path& place : {fs::current_path(none), fs::temp_directory_path(none)})
    if (!place.empty()) places.push_back(place.string());
  return places;
}

void bring_home_spare_states(const Config& config, const RunDescription& run, CheckpointFolders& home, FileCalls& calls,
                             Communicator& control) {
  on_first(control, [&] { bring_home(home, spare_places(config), owner_for(run, config), calls); });
}

std::string spare_folder_after(std::int64_t step, const Config& config, const RunDescription& run, FileCalls& calls) {
  return newest_spare_after(step, spare_places(config), owner_for(run, config), calls);
}

}  // namespace zero
