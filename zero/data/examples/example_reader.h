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

/// The two forms of a file: one example per line, or one JSON list of examples.
enum class ExampleForm : std::uint8_t { lines, list };

/// A .jsonl file has lines. A .json file has lines if its first example begins the file, and is a list otherwise.
/// Throws InputError if the file is unreadable.
ExampleForm form_of(const std::string& path);

/// The place of an example: "PATH:LINE" or "PATH: row ROW".
std::string place_of(const std::string& path, ExampleForm form, std::int64_t number);
/// The number in a place of this form, which may be followed by words in parentheses; 0 if there is none.
std::int64_t number_in_place(std::string_view place);

/// Skips the byte order mark, if a file begins with one.
std::string_view without_mark(std::string_view bytes);

class ExampleReader {
 public:
  /// `take` gets the unparsed text of each example and its place. `before`: number of lines or rows before the bytes; 0
  /// at the file's start.
  ExampleReader(const std::string& path, ExampleForm form,
                std::function<void(std::string_view json, const std::string& place)> take, std::int64_t max_bytes,
                std::int64_t before = 0);

  /// Adds the file's next bytes. Throws InputError if an example exceeds max_bytes or a required list is missing.
  void add(std::string_view bytes);
  /// Call it at the end of the file. Throws InputError if a list is not closed.
  void finish();

 private:
  std::variant<JsonLines, JsonList> examples_;
  bool at_start_;
};

}  // namespace zero
