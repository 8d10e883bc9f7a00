#include "zero/train/records/event_record.h"

#include <bit>
#include <cstring>

#include "base/hash.h"

namespace zero {
namespace {

enum class Wire : std::uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

// Numbers of fields: Event.
constexpr int wall_time = 1, step_number = 2, file_version = 3, summary = 5, session_log = 7;
// Summary, Summary.Value, SessionLog.
constexpr int summary_value = 1, value_tag = 1, value_simple = 2, value_tensor = 8, value_metadata = 9;
constexpr int session_status = 1;
constexpr std::uint64_t session_start = 1;
// SummaryMetadata and its PluginData; TensorProto, TensorShapeProto and its Dim.
constexpr int metadata_plugin = 1, metadata_class = 4, plugin_name = 1;
constexpr int tensor_type = 1, tensor_shape = 2, tensor_string = 8, shape_dimension = 2, dimension_size = 1;
constexpr std::uint64_t type_string = 7, class_tensor = 2;

template <class Number>
void put_little_endian(std::string& out, Number number) {
  for (std::size_t i = 0; i < sizeof(Number); ++i) out += static_cast<char>(number >> 8 * i & 0xFF);
}

void put_varint(std::string& out, std::uint64_t number) {
  for (; number >= 0x80; number >>= 7) out += static_cast<char>(number | 0x80);
  out += static_cast<char>(number);
}

void put_key(std::string& out, int field, Wire wire) {
  put_varint(out, std::uint64_t(field) << 3 | std::uint64_t(wire));
}

void put(std::string& out, int field, std::uint64_t number) {
  put_key(out, field, Wire::varint);
  put_varint(out, number);
}
void put(std::string& out, int field, double number) {
  put_key(out, field, Wire::fixed64);
  put_little_endian(out, std::bit_cast<std::uint64_t>(number));
}
void put(std::string& out, int field, float number) {
  put_key(out, field, Wire::fixed32);
  put_little_endian(out, std::bit_cast<std::uint32_t>(number));
}
void put(std::string& out, int field, std::string_view bytes) {
  put_key(out, field, Wire::bytes);
  put_varint(out, bytes.size());
  out += bytes;
}

/// A tensor of strings, with the shape of the table.
std::string tensor_of(const TextTable& texts) {
  std::string tensor, shape;
  for (const std::size_t size : {texts.cells.size() / texts.columns, texts.columns}) {
    std::string dimension;
    put(dimension, dimension_size, std::uint64_t(size));
    put(shape, shape_dimension, std::string_view(dimension));
  }
  put(tensor, tensor_type, type_string);
  put(tensor, tensor_shape, std::string_view(shape));
  for (const std::string& cell : texts.cells) put(tensor, tensor_string, std::string_view(cell));
  return tensor;
}

/// The Summary.Value of a table.
std::string table_value(const TextTable& texts) {
  std::string plugin, metadata, value;
  put(plugin, plugin_name, std::string_view("text"));
  put(metadata, metadata_plugin, std::string_view(plugin));
  put(metadata, metadata_class, class_tensor);
  put(value, value_tag, std::string_view(texts.tag));
  put(value, value_tensor, std::string_view(tensor_of(texts)));
  put(value, value_metadata, std::string_view(metadata));
  return value;
}

std::uint32_t masked_crc(std::string_view bytes) { return std::rotr(crc32c_of(bytes), 15) + 0xA282EAD8u; }

std::string record_of(std::string_view data) {
  std::string record;
  put_little_endian(record, std::uint64_t(data.size()));
  put_little_endian(record, masked_crc(record));
  record += data;
  put_little_endian(record, masked_crc(data));
  return record;
}

std::string event(double time, std::int64_t step) {
  std::string out;
  put(out, wall_time, time);
  if (step != 0) put(out, step_number, std::uint64_t(step));
  return out;
}

/// The number in the first bytes, which must be there.
template <class Number>
Number little_endian(std::string_view bytes) {
  Number number = 0;
  for (std::size_t i = 0; i < sizeof(Number); ++i) number |= Number(static_cast<unsigned char>(bytes[i])) << 8 * i;
  return number;
}

std::optional<std::uint64_t> take_varint(std::string_view& bytes) {
  std::uint64_t number = 0;
  for (int shift = 0; shift < 64 && !bytes.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes.front());
    bytes.remove_prefix(1);
    number |= std::uint64_t(byte & 0x7F) << shift;
    if (byte < 0x80) return number;
  }
  return std::nullopt;
}

/// Takes off the value of a field; returns false if the bytes end before.
bool skip(std::string_view& bytes, Wire wire) {
  std::optional<std::uint64_t> size = 0;
  if (wire == Wire::varint) return take_varint(bytes).has_value();
  if (wire == Wire::bytes)
    size = take_varint(bytes);
  else
    size = wire == Wire::fixed64 ? 8 : wire == Wire::fixed32 ? 4 : bytes.size() + 1;
  if (!size || *size > bytes.size()) return false;
  bytes.remove_prefix(std::size_t(*size));
  return true;
}

std::optional<EventHead> head_of(std::string_view event) {
  EventHead head;
  while (!event.empty()) {
    const auto key = take_varint(event);
    if (!key) return std::nullopt;
    const auto field = int(*key >> 3);
    if (field == session_log) head.begins_session = true;
    std::string_view value = event;
    if (!skip(event, Wire(*key & 7))) return std::nullopt;
    if (field == step_number) head.step = std::int64_t(take_varint(value).value_or(0));
  }
  return head;
}

}  // namespace

std::string version_record(double time) {
  std::string out = event(time, 0);
  put(out, file_version, std::string_view("brain.Event:2"));
  return record_of(out);
}

std::string session_record(double time, std::int64_t step) {
  std::string log, out = event(time, step);
  put(log, session_status, session_start);
  put(out, session_log, std::string_view(log));
  return record_of(out);
}

std::string summary_record(double time, std::int64_t step, const std::vector<std::pair<std::string, double>>& scalars,
                           const TextTable& texts) {
  std::string values, out = event(time, step);
  for (const auto& [tag, scalar] : scalars) {
    std::string value;
    put(value, value_tag, std::string_view(tag));
    put(value, value_simple, static_cast<float>(scalar));
    put(values, summary_value, std::string_view(value));
  }
  if (!texts.cells.empty()) put(values, summary_value, std::string_view(table_value(texts)));
  put(out, summary, std::string_view(values));
  return record_of(out);
}

std::optional<EventHead> take_record(std::string_view& bytes) {
  constexpr std::size_t before = 12, behind = 4;
  if (bytes.size() < before + behind) return std::nullopt;
  const auto size = little_endian<std::uint64_t>(bytes);
  if (little_endian<std::uint32_t>(bytes.substr(8)) != masked_crc(bytes.substr(0, 8))) return std::nullopt;
  if (size > bytes.size() - before - behind) return std::nullopt;
  const std::string_view data = bytes.substr(before, std::size_t(size));
  if (little_endian<std::uint32_t>(bytes.substr(before + data.size())) != masked_crc(data)) return std::nullopt;
  bytes.remove_prefix(before + data.size() + behind);
  return head_of(data);
}

}  // namespace zero
