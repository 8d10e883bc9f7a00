#pragma once
// ExampleReader: the texts of a file's examples, from the file's bytes in chunks of any size. No LibTorch.
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <variant>

#include "zero/data/examples/json_lines.h"
#include "zero/data/examples/json_list.h"

namespace zero {

/// Whether a file is one JSON list of examples (.json); else it has one a line (.jsonl).
bool is_example_list(const std::string& path);

/// The bytes behind the byte order mark that a file may begin with.
std::string_view without_mark(std::string_view bytes);

class ExampleReader {
 public:
  /// `take` gets an example's text, which is not yet known to be JSON, and its place: "PATH:LINE" or "PATH: row ROW".
  /// The bytes to come go on behind `before` lines or rows; without any they are the file's first.
  ExampleReader(const std::string& path, std::function<void(std::string_view json, const std::string& place)> take,
                std::int64_t max_bytes, std::int64_t before = 0);

  /// The file's next bytes. InputError for an example longer than max_bytes, and for what is no list where there must
  /// be one.
  void add(std::string_view bytes);
  /// The file is at its end. InputError when a list is not.
  void finish();

 private:
  std::variant<JsonLines, JsonList> examples_;
  bool at_start_;
};

}  // namespace zero
