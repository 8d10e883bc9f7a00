#include "zero/checkpoint/spare_checkpoints.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/error.h"
#include "base/files/durable_file.h"
#include "base/files/file.h"
#include "base/files/lookup.h"
#include "base/log.h"
#include "zero/checkpoint/damaged_checkpoint.h"
#include "zero/checkpoint/saved_states.h"

namespace zero {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view folder_prefix = "zero-checkpoint-";
constexpr std::int64_t chunk_bytes = 4 << 20;

struct SpareCheckpoint {
  std::int64_t step = 0;
  std::string folder;  // zero-checkpoint-XXXXXX
  Manifest manifest;
  std::string text;  // of the manifest

  std::string path(FileCalls& calls) const { return CheckpointFolders(calls, folder).path(step); }
};

bool is_own_folder(const std::string& path, FileCalls& calls) {
  const FileFacts facts = facts_of(path, calls, Links::kept);
  return facts.kind == FileFacts::Kind::directory && facts.owner == ::geteuid() &&
         (facts.mode & (S_IWGRP | S_IWOTH)) == 0;
}

/// Returns none unless the file is a regular file of this user.
std::optional<File> open_own(const std::string& path, FileCalls& calls) {
  const FileFacts facts = facts_of(path, calls, Links::kept);
  if (facts.kind != FileFacts::Kind::file || facts.owner != ::geteuid()) return std::nullopt;
  File file = File::open(path, calls, Links::kept);
  if (file.owner() != ::geteuid()) return std::nullopt;
  return file;
}

/// Returns the checkpoint of a step in a spare folder. Returns none if the folder is not a checkpoint, or if it may
/// belong to another run.
std::optional<SpareCheckpoint> checkpoint_of(std::int64_t step, const std::string& folder, const OwnerOf& owner_of,
                                             FileCalls& calls) {
  SpareCheckpoint found{step, folder, {}, {}};
  const std::string path = found.path(calls), manifest = path + "/manifest.json";
  if (!is_own_folder(path, calls)) return std::nullopt;
  const std::optional<File> file = open_own(manifest, calls);
  if (!file) return std::nullopt;
  try {
    if (file->size() > Manifest::most_bytes)
      throw DamagedCheckpoint(text(manifest, ": has ", file->size(), " bytes, too many for a manifest"));
    found.text.resize(std::size_t(file->size()));
    file->read_at(found.text.data(), file->size(), 0);
    found.manifest = parse_manifest(found.text, manifest);
  } catch (const UnreadableError&) {
    throw;
  } catch (const Error& error) {  // damaged, or of a later version
    log_warning(error.what(), ": the states that a run saved there when its disk was full are not used");
    return std::nullopt;
  }
  const Owner owner = owner_of(found.manifest.run);
  if (owner == Owner::unknown)
    log_warning(path, ": holds states of step ", step,
                " of this run or of a copy of it, and is left where it is: `zero_export ", path,
                " OUT` makes the result of them in a folder OUT");
  if (owner != Owner::this_run) return std::nullopt;
  return found;
}

/// Newest first.
std::vector<SpareCheckpoint> spare_checkpoints(const std::vector<std::string>& places, const OwnerOf& owner_of,
                                               FileCalls& calls) {
  std::vector<SpareCheckpoint> found;
  for (const std::string& place : places) {
    if (::access(place.c_str(), R_OK | X_OK) != 0 && errno == EACCES) continue;  // this user may not read the folder
    for (const std::string& name : names_in(place, calls)) {
      const std::string folder = (fs::path(place) / name).string();
      if (!name.starts_with(folder_prefix) || !is_own_folder(folder, calls)) continue;
      for (const std::int64_t step : CheckpointFolders(calls, folder).names())
        if (auto checkpoint = checkpoint_of(step, folder, owner_of, calls)) found.push_back(std::move(*checkpoint));
    }
  }
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.step > b.step; });
  return found;
}

/// Returns a description of the damage to a checkpoint; none if it is intact. Throws InputError if that cannot be
/// determined.
std::optional<std::string> damage_of(const std::string& folder, FileCalls& calls) {
  try {
    SavedStates(calls, folder).verify();
    return std::nullopt;
  } catch (const DamagedCheckpoint& error) {
    return error.what();
  }
}

/// Returns -1 if there is none.
std::int64_t newest_whole(const CheckpointFolders& folders, FileCalls& calls) {
  for (const std::int64_t step : folders.steps())
    if (!damage_of(folders.path(step), calls)) return step;
  return -1;
}

/// Returns a reason why the files of a spare checkpoint cannot be intact, without reading them; none if no reason is
/// visible.
std::optional<std::string> fault_of(const SpareCheckpoint& spare, FileCalls& calls) {
  for (const SavedFile& file : spare.manifest.files) {
    const std::string path = spare.path(calls) + "/" + file.name;
    const FileFacts facts = facts_of(path, calls, Links::kept);
    if (facts.kind != FileFacts::Kind::file || facts.owner != ::geteuid())
      return path + ": is no regular file of this user";
    if (facts.bytes != file.mark.bytes)
      return text(path, ": has ", facts.bytes, " bytes and was written with ", file.mark.bytes);
  }
  return std::nullopt;
}

void copy_file(const std::string& from, const std::string& to, std::int64_t bytes, FileCalls& calls) {
  const std::optional<File> source = open_own(from, calls);
  if (!source) throw Error(from + ": is no regular file of this user any more");
  DurableFile copy(calls, to, DurableFile::Buffered{});
  std::vector<std::byte> chunk(std::size_t(std::min(chunk_bytes, bytes)));
  for (std::int64_t done = 0; done < bytes; done += chunk_bytes) {
    const std::int64_t part = std::min(chunk_bytes, bytes - done);
    source->read_at(chunk.data(), part, done);
    copy.append(chunk.data(), part);
  }
  copy.finish();
}

/// Copies the whole folder to `home` under a temporary name.
void copy_files(const SpareCheckpoint& spare, CheckpointFolders& home, FileCalls& calls) {
  const std::string from = spare.path(calls) + "/", to = home.temporary_path(spare.step) + "/";
  home.begin(spare.step);
  for (const SavedFile& file : spare.manifest.files)
    copy_file(from + file.name, to + file.name, file.mark.bytes, calls);
  DurableFile manifest(calls, to + "manifest.json", DurableFile::Buffered{});
  manifest.append(spare.text.data(), std::int64_t(spare.text.size()));
  manifest.finish();
}

/// Returns false, with a warning, if the spare is damaged. The spare then stays, and `home` holds none of its files.
bool take_home(const SpareCheckpoint& spare, CheckpointFolders& home, FileCalls& calls) {
  const std::string source = spare.path(calls), target = home.path(spare.step);
  std::optional<std::string> damage = fault_of(spare, calls);
  if (!damage) {
    try {
      copy_files(spare, home, calls);
      damage = damage_of(home.temporary_path(spare.step), calls);
      if (!damage) home.publish(spare.step);
    } catch (const Error& error) {
      home.discard(spare.step);
      throw InputError(
          text(source, " holds newer states of this run and cannot be moved to ", target, ": ", error.what()));
    }
  }
  if (!damage) {
    log_info(source, " is now ", target);
    return true;
  }
  home.discard(spare.step);
  log_warning("states of step ", spare.step, ", saved elsewhere when the disk was full, do not verify: ", *damage,
              ". They stay in ", source);
  return false;
}

// Removes the manifest last, since without it the owner of the other files is unknown.
void forget(const SpareCheckpoint& spare, FileCalls& calls) {
  try {
    for (const SavedFile& file : spare.manifest.files) calls.remove(spare.path(calls) + "/" + file.name);
    CheckpointFolders(calls, spare.folder).remove(spare.path(calls));
    calls.remove(spare.folder);  // unless it holds other files
  } catch (const Error& error) {
    log_warning("states that the run does not need any more stay in ", spare.path(calls), ": ", error.what());
  }
}

}  // namespace

std::optional<std::string> make_spare_folder(const std::string& place, FileCalls& calls) {
  std::string folder = (fs::absolute(place) / (std::string(folder_prefix) + "XXXXXX")).string();
  if (!::mkdtemp(folder.data())) return std::nullopt;
  if (is_own_folder(folder, calls)) return folder;
  calls.remove(folder);
  return std::nullopt;
}

std::string newest_spare_after(std::int64_t step, const std::vector<std::string>& places, const OwnerOf& owner_of,
                               FileCalls& calls) {
  for (const SpareCheckpoint& spare : spare_checkpoints(places, owner_of, calls))
    if (spare.step > step && !fault_of(spare, calls)) return spare.folder;
  return "";
}

void bring_home(CheckpointFolders& home, const std::vector<std::string>& places, const OwnerOf& owner_of,
                FileCalls& calls) {
  const std::vector<SpareCheckpoint> spares = spare_checkpoints(places, owner_of, calls);
  if (spares.empty()) return;
  std::int64_t whole = newest_whole(home, calls);
  for (const SpareCheckpoint& spare : spares) {
    if (spare.step <= whole) break;
    if (!take_home(spare, home, calls)) continue;
    whole = spare.step;
    break;
  }
  for (const SpareCheckpoint& spare : spares)
    if (spare.step <= whole) forget(spare, calls);
}

}  // namespace zero
