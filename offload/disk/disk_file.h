#pragma once
// DiskFile: one preallocated file of the disk tier. It bypasses the page cache if the file system can. Queues that take
// a descriptor (io_uring) read and write the file repeatedly. Unlike a DurableFile (base/files/durable_file.h) it need
// not outlive its run, so it is never synced.
#include <cstdint>
#include <string>

namespace zero {

class DiskDirectory;

class DiskFile {
 public:
  // direct I/O needs offsets, sizes and addresses that are multiples of this
  static constexpr std::int64_t block = 4096;

  /// Creates `directory/name.zero-state` and allocates all of it, so that no later write finds the disk full. `bytes`
  /// must be a multiple of `block`. If there is no room, throws Error with the needed and the free bytes.
  DiskFile(const DiskDirectory& directory, const std::string& name, std::int64_t bytes);
  ~DiskFile();  // removes the file
  DiskFile(const DiskFile&) = delete;
  DiskFile& operator=(const DiskFile&) = delete;

  int descriptor() const { return descriptor_; }
  std::int64_t bytes() const { return bytes_; }
  const std::string& path() const { return path_; }
  bool direct() const { return direct_; }

  /// Throws Error if the file has been removed or truncated since it was created.
  void check_intact() const;

 private:
  std::string path_;
  std::int64_t bytes_ = 0;
  int descriptor_ = -1;
  bool direct_ = false;
};

}  // namespace zero
