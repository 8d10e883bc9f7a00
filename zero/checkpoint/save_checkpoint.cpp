#include "zero/checkpoint/save_checkpoint.h"

#include <array>
#include <bit>
#include <chrono>
#include <cstdio>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/files/durable_file.h"
#include "base/log.h"
#include "comm/agreement/agreement.h"
#include "comm/object_collectives.h"
#include "zero/checkpoint/shard_packer.h"
#include "zero/checkpoint/state_shares.h"

namespace zero {
namespace {

using Clock = std::chrono::steady_clock;

std::string shard_name(int rank) {
  char name[32];
  std::snprintf(name, sizeof name, "rank-%05d.states", rank);
  return name;
}

/// Returns every rank's file mark, by rank. Collective.
std::vector<FileMark> gather(Communicator& communicator, const FileMark& mark) {
  const std::array mine{mark.bytes, std::bit_cast<std::int64_t>(mark.checksum)};
  const std::vector<std::int64_t> all = all_gather_numbers(communicator, mine, {Phase::save});
  std::vector<FileMark> marks(static_cast<std::size_t>(communicator.size()));
  for (std::size_t r = 0; r < marks.size(); ++r)
    marks[r] = {all[2 * r], std::bit_cast<decltype(mark.checksum)>(all[2 * r + 1])};
  return marks;
}

/// Makes the manifest durable. It can be written under its final name, because the folder is not marked complete yet.
void write_manifest(const Manifest& manifest, const std::string& folder, FileCalls& calls) {
  const std::string content = format_manifest(manifest);
  DurableFile file(calls, folder + "/manifest.json", DurableFile::Buffered{});
  file.append(content.data(), static_cast<std::int64_t>(content.size()));
  file.finish();
}

/// The checkpoint of this step is now the newest, since later steps belong to a run that did not continue. A failure to
/// move or remove one of those does not harm the new checkpoint.
void prune(CheckpointFolders& folders, std::int64_t step, std::int64_t keep) {
  try {
    for (const std::int64_t other : folders.steps())
      if (other > step) folders.set_aside(other, CheckpointFolders::Aside::later);
    folders.prune(keep);
    folders.sweep();  // retries removals that failed; otherwise their files would fill the disk in a long run
  } catch (const Error& error) {
    log_warning("an old checkpoint stays: ", error.what());
  }
}

Manifest manifest_of(const CheckpointModels& models, const RunDescription& run, const RunPosition& position,
                     std::int64_t chunk_elements) {
  Manifest manifest;
  for (const CheckpointModel& model : models.models) {
    if (!model.name.empty() || !model.type.empty())
      manifest.models.push_back({model.name, model.type, model.states.steps_done()});
  }
  manifest.run = run;
  manifest.position = position;
  manifest.chunk_elements = chunk_elements;
  manifest.groups = saved_groups(models);
  return manifest;
}

}  // namespace

CheckpointSave::CheckpointSave(CheckpointModels models, const RunDescription& run, const RunPosition& position,
                               CheckpointFolders& folders, FileCalls& calls, Communicator& control,
                               const SaveOptions& options)
    : models_(std::move(models)),
      folders_(folders),
      calls_(calls),
      control_(control),
      ranks_(models_.host()),
      rank_(ranks_.rank()),
      options_(options),
      sections_(sections_of_ranks(models_)),
      manifest_(manifest_of(models_, run, position, options.chunk_elements)),
      format_(sections_[std::size_t(rank_)], manifest_.states(), options.chunk_elements),
      folder_(folders.temporary_path(position.steps)) {
  // 1. Creates an empty temporary folder, and copies the states if training continues during the save.
  all_or_none(control_, [&] {
    if (rank_ == 0) folders_.begin(position.steps);
    for (const CheckpointModel& model : models_.models) model.states.mesh().ranks().failures().check();
    if (HostArena* const copy = options_.copy) {
      ZERO_CHECK(std::int64_t(copy->block_bytes()) >= format_.table_offset(), "the copy of a shard has no room for it");
      pack_states(models_, format_,
                  {format_, [&](const ShardChunk& chunk) { return copy->block(0) + chunk.offset; }, {}});
    }
  });
  // 2. Writes and syncs every rank's states.
  begin([this] { options_.copy ? write_copy() : write_states(); });
}

CheckpointSave::~CheckpointSave() { abandon(); }

SaveProgress CheckpointSave::progress() const {
  if (failed_) return SaveProgress::failed;
  const bool runs = work_.valid() && work_.wait_for(std::chrono::seconds(0)) == std::future_status::timeout;
  return runs ? SaveProgress::under_way : SaveProgress::ended;
}

std::chrono::duration<double> CheckpointSave::time() const {
  const double seconds = part_seconds_;
  return former_parts_ + (seconds < 0 ? Clock::now() - part_begin_ : std::chrono::duration<double>(seconds));
}

bool CheckpointSave::go_on() {
  // No rank proceeds before all have done their part.
  all_or_none(control_, [&] { work_.get(); });
  if (part_ == Part::name) return false;
  ZERO_CHECK(!abandoned_, "a rank's states are given up where another has failed");
  // 3. Gathers every rank's file mark.
  const std::vector<FileMark> marks = gather(ranks_, mark_);
  for (int r = 0; r < ranks_.size(); ++r)
    manifest_.files.push_back({shard_name(r), sections_[std::size_t(r)], marks[std::size_t(r)]});
  // 4. Writes and syncs the manifest, renames the folder, which marks it complete, and prunes.
  part_ = Part::name;
  begin([this] {
    if (rank_ == 0) write_name();
  });
  return true;
}

void CheckpointSave::finish() {
  while (go_on()) {
  }
}

void CheckpointSave::write_states() {
  ShardWriter writer(calls_, shard_path(), format_);
  const HostArena chunk(1, static_cast<std::size_t>(format_.largest_chunk_bytes()), MemoryCategory::buffers);
  pack_states(models_, format_,
              {format_, [&](const ShardChunk&) { return chunk.block(0); },
               [&](const ShardChunk& of, const std::byte* from) { writer.append(of, from); }});
  mark_ = writer.finish();
}

void CheckpointSave::write_copy() {
  ShardWriter writer(calls_, shard_path(), format_);
  for (std::int64_t i = 0; i < format_.chunks(); ++i) {
    if (abandoned_) return;
    const ShardChunk chunk = format_.chunk(i);
    writer.append(chunk, options_.copy->block(0) + chunk.offset);
  }
  mark_ = writer.finish();
}

void CheckpointSave::write_name() {
  write_manifest(manifest_, folder_, calls_);
  folders_.publish(manifest_.position.steps);
  prune(folders_, manifest_.position.steps, options_.keep);
}

// Runs on its own thread if there is a copy. Without a copy, or if no thread can be started, get() runs the work.
void CheckpointSave::begin(std::function<void()> work) {
  former_parts_ = time();
  part_begin_ = Clock::now();
  part_seconds_ = -1;
  const auto noted = [this, work = std::move(work)] {
    try {
      work();
    } catch (...) {
      failed_ = true;
      throw;
    }
    part_seconds_ = std::chrono::duration<double>(Clock::now() - part_begin_).count();
  };
  try {
    work_ = std::async(options_.copy ? std::launch::async : std::launch::deferred, noted);
  } catch (const std::system_error&) {
    work_ = std::async(std::launch::deferred, noted);
  }
}

std::string CheckpointSave::shard_path() const { return folder_ + "/" + shard_name(rank_); }

void save_checkpoint(CheckpointModels models, const RunDescription& run, const RunPosition& position,
                     CheckpointFolders& folders, FileCalls& calls, Communicator& control, const SaveOptions& options) {
  CheckpointSave(std::move(models), run, position, folders, calls, control, options).finish();
}

}  // namespace zero
