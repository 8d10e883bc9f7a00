#pragma once
// FetchProgress: the lines of a fetch on standard error. On a terminal it rewrites one line. Elsewhere it prints
// a line per complete file, and a line per minute while a file takes long.
#include <chrono>
#include <cstdint>
#include <ostream>
#include <string>

namespace zero {

/// "model.safetensors  1.2 of 4.9 GiB  85.2 MiB/s  0:43 left". `path`: shortened from its front if the line would have
/// more than `columns` (0: any number). `rate`: bytes a second; 0: unknown.
std::string fetch_line(const std::string& path, std::int64_t done, std::int64_t total, double rate, int columns);

/// The columns of the terminal on standard error; 0 if standard error is not a terminal.
int error_terminal_columns();

class FetchProgress {
 public:
  /// `total`: bytes of all files together. `columns`: of the terminal; 0: plain lines.
  FetchProgress(std::ostream& out, std::int64_t total, int columns);
  ~FetchProgress();
  FetchProgress(const FetchProgress&) = delete;
  FetchProgress& operator=(const FetchProgress&) = delete;

  /// Call it when a file begins. An earlier fetch has left `here` bytes of the file.
  void begin(const std::string& path, std::int64_t here);
  /// Call it when `here` bytes of the current file have arrived.
  void grown(std::int64_t here);
  /// Call it when the current file, of `bytes` bytes, is complete.
  void end(std::int64_t bytes);

 private:
  using Clock = std::chrono::steady_clock;

  void show();
  std::string make_way();

  std::ostream& out_;
  std::int64_t total_;
  int columns_;
  bool line_open_ = false;
  std::string path_;
  std::int64_t complete_ = 0, here_ = 0;  // bytes of complete files, and of the current one
  std::int64_t received_ = 0;             // by this process
  Clock::time_point begun_ = Clock::now(), shown_ = begun_, file_begun_ = begun_;
};

}  // namespace zero
