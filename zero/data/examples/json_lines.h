#pragma once
// JsonLines: splits a .jsonl file into lines. Holds one line at a time. No LibTorch.
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace zero {

class JsonLines {
 public:
  /// `take` gets each line that is not blank, and its number, which counts from 1. The line has no line end and is not
  /// parsed yet. Messages begin with `path`. `lines_before`: number of lines before the bytes.
  JsonLines(std::string path, std::function<void(std::string_view line, std::int64_t number)> take,
            std::int64_t max_line_bytes, std::int64_t lines_before = 0);

  /// Adds the file's next bytes. Throws InputError if a line exceeds max_line_bytes.
  void add(std::string_view bytes);
  /// Call it at the end of the file, to process a last line without a line end.
  void finish();

 private:
  void hold(std::string_view bytes);

  std::string path_;
  std::function<void(std::string_view, std::int64_t)> take_;
  std::int64_t max_bytes_;
  std::string held_;  // start of an incomplete line
  std::int64_t number_;
};

}  // namespace zero
