#include "zero/fetch/fetch.h"

#include <iostream>
#include <memory>
#include <vector>

#include "base/byte_count.h"
#include "base/error.h"
#include "base/files/free_space.h"
#include "base/files/past_refusal.h"
#include "base/log.h"
#include "zero/fetch/destination.h"
#include "zero/fetch/fetch_progress.h"
#include "zero/fetch/hub.h"

namespace zero {
namespace {

std::unique_ptr<Destination> destination_of(FileCalls& calls, const FetchOptions& options, const HubSettings& settings,
                                            const std::string& commit) {
  if (!options.to.empty()) return folder_destination(calls, options.to, options.overwrite);
  if (settings.cache.empty())
    throw InputError("no folder is known for the cache: set HF_HOME, or name a folder by --to");
  return cache_destination(calls, settings.cache, options.repository, commit);
}

void require_room(const Destination& destination, const std::vector<HubFile>& files) {
  std::int64_t need = 0;
  for (const HubFile& file : files) need += destination.missing_bytes(file);
  const std::int64_t room = free_disk_bytes(destination.folder());
  if (room < 0 || need <= room) return;
  throw InputError(text(destination.folder(), ": its disk has room for ", bytes_text(room),
                        ", and the fetch will write ", bytes_text(need), " (", need,
                        " bytes): free some, or name a folder on another disk by --to"));
}

std::int64_t bytes_of(const std::vector<HubFile>& files) {
  std::int64_t bytes = 0;
  for (const HubFile& file : files) bytes += file.bytes;
  return bytes;
}

/// "9 files, 4.9 GiB"
std::string size_text(const std::vector<HubFile>& files) {
  return text(files.size(), files.size() == 1 ? " file, " : " files, ", bytes_text(bytes_of(files)));
}

/// The fetch of single files.
struct Transport {
  FileCalls& calls;
  Hub& hub;
  Destination& destination;
  FetchProgress& progress;
  const std::string& commit;

  /// True if the file has its name now. False, with the file removed, if bytes of an earlier fetch made its hash wrong.
  bool fetch(const HubFile& file) const {
    PartialFile partial(calls, destination.partial_path(file), file);
    const bool resumed = partial.bytes() > 0;
    progress.begin(file.path, partial.bytes());
    partial.watch([&](std::int64_t here) { progress.grown(here); });
    hub.read(file, commit, partial);
    const std::string hash = partial.hash();
    if (hash == file.hash) {
      destination.publish(partial, file);
      progress.end(file.bytes);
      return true;
    }
    partial.discard();
    const std::string words = text(file.path, ": its ", file.has_sha256() ? "SHA-256" : "git SHA-1", " is ", hash,
                                   " where the hub lists ", file.hash);
    if (!resumed)
      throw Error(words +
                  ": the bytes were changed on their way, and are removed. Run the command again; if it happens "
                  "again, look for a proxy in between, or ask the repository's owner");
    log_warning(words, ": what an earlier fetch left was damaged; the file is fetched anew");
    return false;
  }
};

}  // namespace

std::string fetch(const FetchOptions& options, const HubSettings& settings) {
  Hub hub(settings, options.repository, options.tries, options.agent);
  const std::string commit = hub.commit();
  const std::vector<HubFile> files = select_files(hub.files(commit), options.selection, options.repository);
  FileCalls calls;
  const auto destination = destination_of(calls, options, settings, commit);
  require_room(*destination, files);
  destination->open();
  std::vector<HubFile> missing;
  for (const HubFile& file : files)
    if (!destination->holds(file)) missing.push_back(file);
  log_info(options.repository.name, " at commit ", commit, ": ", size_text(files), "; to fetch: ", size_text(missing));
  FetchProgress progress(std::cerr, bytes_of(missing), error_terminal_columns());
  const Transport transport{calls, hub, *destination, progress, commit};
  bool written = false;  // a refusal of the first file comes before anything is written
  for (const HubFile& file : missing) {
    const auto whole = [&] {
      while (!transport.fetch(file)) continue;
    };
    written ? past_refusal(whole) : whole();
    written = true;
  }
  destination->finish(files);
  return destination->folder();
}

}  // namespace zero
