#pragma once
// JSON from files that nobody vouches for: size and depth are capped, a key may come once, text is valid UTF-8.
// For .cpp files of this room only: it brings nlohmann-json with it.
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace zero {

struct JsonLimits {
  std::int64_t bytes = 64 << 20;
  int depth = 64;
};

/// Parses one document. InputError names `path` and the rule that was broken.
nlohmann::json parse_json(std::string_view json, const std::string& path, const JsonLimits& limits = {});

/// A whole small file. InputError when it cannot be read or is larger than `max_bytes`.
std::string read_text_file(const std::string& path, std::int64_t max_bytes = 64 << 20);

/// Writes beside the target, syncs and renames, so that a reader sees the old file or the new one whole.
void write_text_file(const std::string& path, std::string_view content);

}  // namespace zero
