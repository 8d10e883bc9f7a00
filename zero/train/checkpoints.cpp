#include "zero/train/checkpoints.h"

#include <cstring>
#include <filesystem>
#include <iomanip>

#include "base/error.h"
#include "base/log.h"
#include "comm/agreement/agreement.h"
#include "comm/object_collectives.h"
#include "zero/checkpoint/spare_checkpoints.h"
#include "zero/checkpoint/state_shares.h"
#include "zero/estimate/disk_room.h"
#include "zero/output/run_mark.h"
#include "zero/output/shared_directory.h"

namespace zero {
namespace {

using Clock = std::chrono::steady_clock;

std::string seconds_text(std::chrono::duration<double> seconds) {
  return text(std::fixed, std::setprecision(2), seconds.count(), " s");
}

/// Returns a message without the folder in which all its files are.
std::string without(const std::string& folder, std::string message) {
  for (std::size_t at = message.find(folder); at != message.npos; at = message.find(folder, at))
    message.erase(at, folder.size());
  return message;
}

}  // namespace

const char* const Checkpoints::training_waits = "training waits until a checkpoint is written";

Checkpoints::Checkpoints(const CheckpointConfig& config, Parts parts)
    : config_(config), parts_(std::move(parts)), folders_(parts_.calls, parts_.root) {
  if (!parts_.asynchronous) return;
  const int rank = parts_.model.host().rank();
  const auto failure = agreed_failure_of([&] {
    all_or_none(parts_.control, [&] {
      copy_.emplace(1, static_cast<std::size_t>(shard_bytes(parts_.model)[std::size_t(rank)]), MemoryCategory::buffers);
      std::memset(copy_->block(0), 0, copy_->block_bytes());  // a page is only allocated when it is written
    });
  });
  if (!failure) return;
  copy_.reset();
  if (rank == 0) log_warning("checkpoint.asynchronous: ", *failure, ", so ", training_waits);
}

bool Checkpoints::due(std::int64_t steps, std::int64_t total) const {
  const bool in_steps = config_.interval > 0 && steps % config_.interval == 0;
  return in_steps || (config_.is_regular() && steps == total);
}

bool Checkpoints::save(const RunPosition& position) {
  finish();
  const Clock::time_point begin = Clock::now();
  const std::optional<std::string> failure = save_into(folders_, position);
  return conclude(position, failure, seconds_text(Clock::now() - begin));
}

void Checkpoints::begin(const RunPosition& position) {
  if (!copy_) {
    save(position);
    return;
  }
  finish();
  position_ = position;
  begin_ = Clock::now();
  waited_ = {};
  tend([&] {
    under_way_ = std::make_unique<CheckpointSave>(parts_.model, parts_.run, position, folders_, parts_.calls,
                                                  parts_.control, SaveOptions{.keep = config_.keep, .copy = &*copy_});
    return true;
  });
}

SaveProgress Checkpoints::progress() const { return under_way_ ? under_way_->progress() : SaveProgress::ended; }

std::chrono::duration<double> Checkpoints::time() const {
  return under_way_ ? under_way_->time() : std::chrono::duration<double>(0);
}

void Checkpoints::go_on(bool failed) {
  if (!under_way_) return;
  if (failed) under_way_->abandon();
  tend([&] { return under_way_->go_on(); });
}

void Checkpoints::finish() {
  while (under_way_) go_on(/*failed=*/false);
}

void Checkpoints::tend(const std::function<bool()>& work) {
  const Clock::time_point begin = Clock::now();
  bool goes_on = false;
  const auto failure = agreed_failure_of([&] { goes_on = work(); });
  const Clock::time_point now = Clock::now();
  waited_ += now - begin;
  if (goes_on) return;
  under_way_.reset();
  if (failure && parts_.model.host().rank() == 0) folders_.discard(position_.steps);
  conclude(position_, failure, seconds_text(now - begin_) + ", of which the run waited " + seconds_text(waited_));
}

bool Checkpoints::conclude(const RunPosition& position, const std::optional<std::string>& failure,
                           const std::string& how_long) {
  failed_ = failure.has_value();
  if (failed_) {
    if (parts_.model.host().rank() == 0) tell_of_failure(position, *failure);
    return false;
  }
  saved_steps_ = position.steps;
  note_saved_once();
  log_info("checkpoint ", folders_.path(position.steps), ", written in ", how_long);
  return true;
}

void Checkpoints::tell_of_failure(const RunPosition& position, const std::string& why) const {
  std::string left;
  try {
    const std::vector<std::int64_t> steps = folders_.steps();
    left = steps.empty() ? "there is no older one" : text("the newest one is of step ", steps.front());
  } catch (const Error& error) {
    left = text("older ones cannot be looked at: ", error.what());
  }
  log_warning("the checkpoint of step ", position.steps,
              " is given up, and training goes on: ", without(folders_.root() + "/", text(why, "; ", left)));
}

// If this fails, a later start does not know that a checkpoint is missing, and the next save tries again.
void Checkpoints::note_saved_once() {
  if (noted_ || parts_.model.host().rank() != 0) return;
  try {
    note_saved(std::filesystem::path(folders_.root()).parent_path().string(), parts_.calls);
    noted_ = true;
  } catch (const Error& error) {
    log_warning(error.what());
  }
}

std::optional<std::string> Checkpoints::save_into(CheckpointFolders& folders, const RunPosition& position) {
  auto failure = agreed_failure_of([&] {
    save_checkpoint(parts_.model, parts_.run, position, folders, parts_.calls, parts_.control, {.keep = config_.keep});
  });
  if (failure && parts_.model.host().rank() == 0) folders.discard(position.steps);
  return failure;
}

std::optional<std::string> Checkpoints::save_anywhere(const RunPosition& position) {
  finish();
  if (saved_steps_ == position.steps) return folders_.path(position.steps);
  if (!save_into(folders_, position)) return folders_.path(position.steps);
  // Rank 0 names the places, since other ranks may see other places and must make the same calls.
  const std::int64_t places = broadcast_number(parts_.model.host(), std::int64_t(parts_.spare_places.size()), 0);
  for (std::int64_t i = 0; i < places; ++i)
    if (const auto saved = save_into_place(
            std::size_t(i) < parts_.spare_places.size() ? parts_.spare_places[std::size_t(i)] : "", position))
      return saved;
  return std::nullopt;
}

std::int64_t Checkpoints::bytes_needed() const { return checkpoint_bytes(parts_.model) + (1 << 20); }

// The folder has a unique name, so nothing that exists in `place` is touched.
std::string Checkpoints::new_folder_in(const std::string& place) const {
  try {
    const std::int64_t room = room_in(place);  // -1: unknown, so it is tried
    if (room >= 0 && room <= bytes_needed()) return "";
    return make_spare_folder(place, parts_.calls).value_or("");
  } catch (const std::exception& error) {
    log_warning(error.what());
    return "";
  }
}

std::optional<std::string> Checkpoints::save_into_place(const std::string& place, const RunPosition& position) {
  Communicator& ranks = parts_.model.host();
  const std::string folder = broadcast_text(ranks, ranks.rank() == 0 ? new_folder_in(place) : "", 0);
  if (folder.empty()) return std::nullopt;
  CheckpointFolders folders(parts_.calls, folder);
  const bool shared = !agreed_failure_of([&] { require_shared(folder, parts_.control, parts_.calls); });
  if (shared && !save_into(folders, position)) return folders.path(position.steps);
  std::error_code none;
  if (ranks.rank() == 0) std::filesystem::remove(folder, none);
  return std::nullopt;
}

std::string Checkpoints::remedy(const std::optional<std::string>& saved) const {
  if (!saved) return "The trained states found room nowhere and are lost";
  const std::string there = "The trained states are in " + *saved + ": ";
  const bool at_home = std::filesystem::path(*saved).parent_path() == std::filesystem::path(folders_.root());
  return there + "when the cause is mended, run again with --resume" +
         (at_home ? "" : ", which moves them to " + folders_.root()) + ", or `zero_export " + *saved +
         " OUT` makes the result of them in a folder OUT";
}

}  // namespace zero
