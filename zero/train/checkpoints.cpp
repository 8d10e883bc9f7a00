#include "zero/train/checkpoints.h"

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iomanip>

#include "base/log.h"
#include "comm/agreement.h"
#include "comm/object_collectives.h"
#include "zero/checkpoint/state_shares.h"
#include "zero/estimate/disk_room.h"
#include "zero/output/shared_directory.h"

namespace zero {

Checkpoints::Checkpoints(const CheckpointConfig& config, Parts parts)
    : config_(config), parts_(std::move(parts)), folders_(parts_.calls, parts_.root) {}

bool Checkpoints::due(std::int64_t steps, std::int64_t total) const {
  const bool in_steps = config_.interval > 0 && steps % config_.interval == 0;
  return in_steps || (config_.is_regular() && steps == total);
}

bool Checkpoints::save(const RunPosition& position) {
  const auto begin = std::chrono::steady_clock::now();
  const std::optional<std::string> failure = save_into(folders_, position);
  failed_ = failure.has_value();
  if (failed_) {
    if (parts_.model.host().rank() == 0) tell_of_failure(position, *failure);
    return false;
  }
  saved_steps_ = position.steps;
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  log_info("checkpoint ", folders_.path(position.steps), ", written in ", std::fixed, std::setprecision(2),
           seconds.count(), " s");
  return true;
}

void Checkpoints::tell_of_failure(const RunPosition& position, const std::string& why) const {
  const std::vector<std::int64_t> left = folders_.steps();
  log_error("the checkpoint of step ", position.steps, " is given up: ", why, ". ",
            left.empty() ? std::string("There is no older one") : "The newest one is " + folders_.path(left.front()));
}

std::optional<std::string> Checkpoints::save_into(CheckpointFolders& folders, const RunPosition& position) {
  auto failure = agreed_failure_of([&] {
    save_checkpoint(parts_.model, parts_.run, position, folders, parts_.calls, parts_.control, {.keep = config_.keep});
  });
  if (failure && parts_.model.host().rank() == 0) folders.discard(position.steps);
  return failure;
}

std::optional<std::string> Checkpoints::save_anywhere(const RunPosition& position) {
  if (saved_steps_ == position.steps) return folders_.path(position.steps);
  if (!save_into(folders_, position)) return folders_.path(position.steps);
  // Rank 0 names them: other ranks may see others, and must make the same calls.
  const std::int64_t places = broadcast_number(parts_.model.host(), std::int64_t(parts_.spare_places.size()), 0);
  for (std::int64_t i = 0; i < places; ++i)
    if (const auto saved = save_into_place(
            std::size_t(i) < parts_.spare_places.size() ? parts_.spare_places[std::size_t(i)] : "", position))
      return saved;
  return std::nullopt;
}

std::int64_t Checkpoints::bytes_needed() const { return checkpoint_bytes(parts_.model) + (1 << 20); }

// A folder with a name of its own: nothing that lies there is touched.
std::optional<std::string> Checkpoints::save_into_place(const std::string& place, const RunPosition& position) {
  Communicator& ranks = parts_.model.host();
  std::string folder;
  if (ranks.rank() == 0 && room_in(place) > bytes_needed()) {
    folder = (std::filesystem::absolute(place) / "zero-checkpoint-XXXXXX").string();
    if (!::mkdtemp(folder.data())) folder.clear();
  }
  folder = broadcast_text(ranks, folder, 0);
  if (folder.empty()) return std::nullopt;
  CheckpointFolders folders(parts_.calls, folder);
  const bool shared = !agreed_failure_of([&] { require_shared(folder, parts_.control); });
  if (shared && !save_into(folders, position)) return folders.path(position.steps);
  std::error_code none;
  if (ranks.rank() == 0) std::filesystem::remove(folder, none);
  return std::nullopt;
}

std::string Checkpoints::remedy(const std::optional<std::string>& saved) const {
  if (!saved) return "The trained states found room nowhere and are lost";
  const std::string there = "The trained states are in " + *saved + ": ";
  const std::string again =
      "run again with --resume, or `zero_export " + *saved + " OUT` makes the result of them in a folder OUT";
  const bool at_home = std::filesystem::path(*saved).parent_path() == std::filesystem::path(folders_.root());
  return there +
         (at_home ? "when the cause is mended, "
                  : "when the cause is mended, make the folder " + folders_.root() + ", move this one into it and ") +
         again;
}

}  // namespace zero
