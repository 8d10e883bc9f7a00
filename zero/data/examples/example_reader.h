#pragma once
// ExampleReader: extracts the text of each example from a file's bytes, in chunks of any size. No LibTorch.
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <variant>

#include "zero/data/examples/json_lines.h"
#include "zero/data/examples/json_list.h"

namespace zero {

/// True if a file is one JSON list of examples (.json); otherwise it has one example a line (.jsonl).
bool is_example_list(const std::string& path);

/// Skips the byte order mark, if a file begins with one.
std::string_view without_mark(std::string_view bytes);

class ExampleReader {
 public:
  /// `take` gets the text of each example, not parsed yet, and its place: "PATH:LINE" or "PATH: row ROW". The bytes
  /// follow `before` lines or rows; 0 means the file's start.
  ExampleReader(const std::string& path, std::function<void(std::string_view json, const std::string& place)> take,
                std::int64_t max_bytes, std::int64_t before = 0);

  /// Adds the file's next bytes. InputError if an example exceeds max_bytes or a required list is missing.
  void add(std::string_view bytes);
  /// Call at the end of the file. InputError if a list is not closed.
  void finish();

 private:
  std::variant<JsonLines, JsonList> examples_;
  bool at_start_;
};

}  // namespace zero
