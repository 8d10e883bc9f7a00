#pragma once
// Destination: the place that receives the files of a commit.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/files/file_calls.h"
#include "zero/fetch/listing.h"
#include "zero/fetch/partial_file.h"
#include "zero/fetch/repository.h"

namespace zero {

/// Members throw Error "PATH: cannot be WHAT: REASON; REMEDY" if the disk fails.
class Destination {
 public:
  virtual ~Destination() = default;

  /// The folder with the files under their own names.
  virtual std::string folder() const = 0;
  /// The number of missing bytes of a file, judged by sizes alone.
  virtual std::int64_t missing_bytes(const HubFile& file) const = 0;
  /// Makes the folders and waits until no other fetch writes to them. The lock lasts as long as this object.
  virtual void open() = 0;
  /// True if the destination holds the file. Throws InputError if another file has its name and may not be replaced.
  virtual bool holds(const HubFile& file) const = 0;
  /// The name of the file while it is fetched.
  virtual std::string partial_path(const HubFile& file) const = 0;
  /// Gives a complete file its final name.
  virtual void publish(PartialFile& partial, const HubFile& file) = 0;
  /// Call it when the destination holds all of these files.
  virtual void finish(const std::vector<HubFile>& files) = 0;
};

/// Makes a destination from a folder of the user. Existing files are read and compared by their hash. A file that
/// differs is replaced if `overwrite` is set. Partial files are in the subfolder .zero_fetch. `calls` must outlive the
/// result.
std::unique_ptr<Destination> folder_destination(FileCalls& calls, std::string folder, bool overwrite);

/// Makes a destination from the cache of huggingface_hub ("Understand caching" in its documentation), which Python
/// programs share. A file is stored as blobs/HASH, and snapshots/COMMIT has links to the blobs. The links and
/// refs/REVISION are made when all files are complete. A file with a blob's name and size counts as that blob. `cache`:
/// HubSettings::cache.
std::unique_ptr<Destination> cache_destination(FileCalls& calls, const std::string& cache, const Repository& repository,
                                               const std::string& commit);

}  // namespace zero
