#include "zero/train/spare_states.h"

#include <filesystem>

#include "base/error.h"
#include "base/files/lookup.h"
#include "comm/agreement/agreement.h"
#include "zero/checkpoint/spare_checkpoints.h"

namespace zero {
namespace {

namespace fs = std::filesystem;

/// The output directory that a checkpoint names; empty where its configuration is of a version that this one cannot read.
std::string output_of(const RunDescription& then) {
  try {
    const Config config = parse_config(then.configuration, "the checkpoint's configuration");
    return (fs::path(then.directory) / config.job.output_dir).string();
  } catch (const InputError&) {
    return "";
  }
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
  on_first(control, [&] {
    // A copy of the run's directory has the run's id, and a run that began anew has its directory.
    const IsOfRun is_of_run = [&](const RunDescription& then) {
      return then.id == run.id && is_same_place(output_of(then), config.job.output_dir);
    };
    bring_home(home, spare_places(config), is_of_run, calls);
  });
}

}  // namespace zero
