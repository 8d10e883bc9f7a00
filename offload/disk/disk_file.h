#pragma once
// DiskFile: one preallocated file of the disk tier, opened past the page cache if the file system can. Queues that take
// a descriptor (io_uring) read and write it repeatedly. Unlike the files of base/files/durable_file.h it need not
// outlive its run, so it is never synced.
#include <cstdint>
#include <string>

namespace zero {

class DiskDirectory;

class DiskFile {
 public:
  // offsets, sizes and addresses of direct input and output are multiples of it
  static constexpr std::int64_t block = 4096;

  /// Creates `directory/name.zero-state` with all its bytes allocated, so that no later write finds the disk full.
  /// `bytes` is a multiple of `block`. Throws Error, with needed and free bytes, if there is no room.
  DiskFile(const DiskDirectory& directory, const std::string& name, std::int64_t bytes);
  ~DiskFile();  // removes the file
  DiskFile(const DiskFile&) = delete;
  DiskFile& operator=(const DiskFile&) = delete;

  int descriptor() const { return descriptor_; }
  std::int64_t bytes() const { return bytes_; }
  const std::string& path() const { return path_; }
  bool direct() const { return direct_; }

  /// Throws Error if the file was removed or cut since it was made.
  void check_intact() const;

 private:
  std::string path_;
  std::int64_t bytes_ = 0;
  int descriptor_ = -1;
  bool direct_ = false;
};

}  // namespace zero
