#pragma once
// Memory that the processes of one node share. Its name in /dev/shm is removed once all processes have mapped it, so
// nothing stays behind, even after a crash.
#include <cstddef>
#include <string>

namespace zero {

class SharedSegment {
 public:
  /// Makes a segment of `bytes` zeros under a new name and allocates all of it at once. If memory does not suffice,
  /// throws Error with the system's limit and the remedy, instead of a SIGBUS later.
  static SharedSegment create(std::size_t bytes);
  /// Maps a segment that another process made.
  static SharedSegment open(const std::string& name, std::size_t bytes);

  SharedSegment(SharedSegment&& other) noexcept;
  SharedSegment& operator=(SharedSegment&&) = delete;
  ~SharedSegment();

  /// Removes the name. Mappings stay.
  void unlink();

  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  const std::string& name() const { return name_; }

 private:
  SharedSegment(std::string name, int file, std::size_t bytes, bool owner);

  std::string name_;
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  bool owner_ = false;
};

}  // namespace zero
