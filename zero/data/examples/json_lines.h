#pragma once
// JsonLines: the lines of a .jsonl file, one by one. Only one of them is held at a time. No LibTorch.
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace zero {

class JsonLines {
 public:
  /// `take` gets each line that is not blank, without its end, and its number from 1; it is not yet known to be JSON.
  /// `path` begins messages. The bytes to come go on behind `lines_before` lines.
  JsonLines(std::string path, std::function<void(std::string_view line, std::int64_t number)> take,
            std::int64_t max_line_bytes, std::int64_t lines_before = 0);

  /// The file's next bytes. InputError for a line longer than max_line_bytes.
  void add(std::string_view bytes);
  /// The file is at its end: a line without one is taken.
  void finish();

 private:
  void hold(std::string_view bytes);

  std::string path_;
  std::function<void(std::string_view, std::int64_t)> take_;
  std::int64_t max_bytes_;
  std::string held_;  // a line's beginning
  std::int64_t number_;
};

}  // namespace zero
