#include "models/formats/gguf_metadata.h"

#include <bit>
#include <limits>

#include "base/error.h"

namespace zero {
namespace {

static_assert(std::endian::native == std::endian::little);

// enum gguf_type
constexpr std::uint32_t type_uint32 = 4, type_int32 = 5, type_float32 = 6, type_bool = 7, type_string = 8,
                        type_array = 9;

}  // namespace

void append_text(std::string& bytes, std::string_view value) {
  append_number<std::uint64_t>(bytes, value.size());
  bytes.append(value);
}

void GgufMetadata::begin(std::string_view key, std::uint32_t type) {
  append_text(bytes_, key);
  append_number(bytes_, type);
  ++count_;
}

void GgufMetadata::add(std::string_view key, std::string_view value) {
  begin(key, type_string);
  append_text(bytes_, value);
}

void GgufMetadata::add_bool(std::string_view key, bool value) {
  begin(key, type_bool);
  append_number<std::uint8_t>(bytes_, value);
}

void GgufMetadata::add_uint32(std::string_view key, std::int64_t value) {
  ZERO_CHECK(value >= 0 && value <= std::numeric_limits<std::uint32_t>::max(), std::string(key) + " is no uint32");
  begin(key, type_uint32);
  append_number(bytes_, static_cast<std::uint32_t>(value));
}

void GgufMetadata::add_float32(std::string_view key, double value) {
  begin(key, type_float32);
  append_number(bytes_, static_cast<float>(value));
}

void GgufMetadata::add(std::string_view key, const std::vector<std::string>& values) {
  begin(key, type_array);
  append_number(bytes_, type_string);
  append_number<std::uint64_t>(bytes_, values.size());
  for (const auto& value : values) append_text(bytes_, value);
}

void GgufMetadata::add(std::string_view key, const std::vector<float>& values) {
  begin(key, type_array);
  append_number(bytes_, type_float32);
  append_number<std::uint64_t>(bytes_, values.size());
  for (const float value : values) append_number(bytes_, value);
}

void GgufMetadata::add(std::string_view key, const std::vector<std::int32_t>& values) {
  begin(key, type_array);
  append_number(bytes_, type_int32);
  append_number<std::uint64_t>(bytes_, values.size());
  for (const std::int32_t value : values) append_number(bytes_, value);
}

}  // namespace zero
