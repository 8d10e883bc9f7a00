#pragma once
// Parses JSON from untrusted files. Size and depth are capped, duplicate keys are rejected, and text must be valid
// UTF-8. Include this in .cpp files only, since it includes nlohmann-json.
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace zero {

struct JsonLimits {
  std::int64_t bytes = 64 << 20;
  int depth = 64;
  // The text is a part of a file. The caller says which part, and messages count bytes from its start.
  bool in_a_file = false;
};

/// Parses one document. Throws InputError, which names `path` and what is wrong.
nlohmann::json parse_json(std::string_view json, const std::string& path, const JsonLimits& limits = {});

/// Like parse_json(), but keeps the order of keys and rejects integers that do not fit into 64 bits instead of rounding
/// them. An object may have at most 10,000 keys, since lookup is linear.
nlohmann::ordered_json parse_ordered_json(std::string_view json, const std::string& path,
                                          const JsonLimits& limits = {});

/// Parses a file that must hold an object. A missing file counts as an empty object.
nlohmann::json read_json_object(const std::string& path, const JsonLimits& limits = {});

/// Throws InputError for an invalid value: PATH: "KEY" must be RULE, not VALUE.
[[noreturn]] void refuse_json(const std::string& path, std::string_view key, std::string_view rule,
                              const nlohmann::json& value);

/// The value as an integer from 0 to `largest`. Throws InputError for any other value.
std::int64_t json_index(const nlohmann::json& value, std::string_view key, std::int64_t largest,
                        const std::string& path);

/// The key's value in an object, or `otherwise` if the key is absent or null. Throws InputError if the value has
/// another type. T is bool, std::int64_t, double, std::string, or std::vector<std::string>.
template <class T>
T json_value(const nlohmann::json& object, const char* key, T otherwise, const std::string& path) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return otherwise;
  const auto& value = *found;
  if constexpr (std::is_same_v<T, bool>) {
    if (!value.is_boolean()) refuse_json(path, key, "true or false", value);
  } else if constexpr (std::is_same_v<T, std::int64_t>) {
    const bool small =
        value.is_number_unsigned() ? value.template get<std::uint64_t>() >> 62 == 0 : value.is_number_integer();
    if (!small) refuse_json(path, key, "an integer", value);
  } else if constexpr (std::is_same_v<T, double>) {
    if (!value.is_number()) refuse_json(path, key, "a number", value);
  } else if constexpr (std::is_same_v<T, std::string>) {
    if (!value.is_string()) refuse_json(path, key, "a string", value);
  } else {
    static_assert(std::is_same_v<T, std::vector<std::string>>);
    if (!value.is_array()) refuse_json(path, key, "a list of strings", value);
    for (const auto& item : value)
      if (!item.is_string()) refuse_json(path, key, "a list of strings", value);
  }
  return value.template get<T>();
}

/// Reads a whole small file. Throws InputError if it cannot be read or is larger than `max_bytes`.
std::string read_text_file(const std::string& path, std::int64_t max_bytes = 64 << 20);

/// Writes a temporary file in the target's folder, syncs it and renames it to `path`. A reader sees either the old file
/// or the complete new one.
void write_text_file(const std::string& path, std::string_view content);

}  // namespace zero
