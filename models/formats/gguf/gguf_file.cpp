#include "models/formats/gguf/gguf_file.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>
#include <type_traits>

#include "base/error.h"
#include "base/files/lookup.h"
#include "base/log.h"
#include "models/formats/gguf/gguf_cursor.h"

namespace zero {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian and read as it lies");

constexpr std::int64_t max_key = 65535, max_tensor_name = 63;  // bytes: limits of the format and GGML_MAX_NAME
constexpr std::uint32_t max_rank = 4;                          // GGML_MAX_DIMS
constexpr std::int64_t least_entry = 8 + 4 + 4;                // bytes of a key and its value, or of a tensor

// enum gguf_type
enum Kind : std::uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, string, array, u64, i64, f64, kinds };

double as_meant(float value) {
  std::array<char, 64> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  double meant = value;
  std::from_chars(digits.data(), end, meant);
  return meant;
}

/// Calls f(T{}) with the C++ type of a number.
template <class F>
auto with_number(std::uint32_t kind, const F& f) {
  switch (kind) {
    case u8:
      return f(std::uint8_t{});
    case i8:
      return f(std::int8_t{});
    case u16:
      return f(std::uint16_t{});
    case i16:
      return f(std::int16_t{});
    case u32:
      return f(std::uint32_t{});
    case i32:
      return f(std::int32_t{});
    case u64:
      return f(std::uint64_t{});
    case i64:
      return f(std::int64_t{});
    case f32:
      return f(float{});
    default:
      return f(double{});
  }
}

GgufValue take_number(GgufCursor& cursor, std::uint32_t kind) {
  return with_number(kind, [&]<class T>(T) -> GgufValue {
    const T value = cursor.take<T>();
    if constexpr (std::is_same_v<T, float>) return as_meant(value);
    if constexpr (std::is_same_v<T, double>) return double(value);
    if constexpr (std::is_same_v<T, std::uint64_t>)
      if (value > std::uint64_t(std::numeric_limits<std::int64_t>::max())) cursor.refuse("a number beyond 63 bits");
    return static_cast<std::int64_t>(value);
  });
}

bool take_bool(GgufCursor& cursor) {
  const auto value = cursor.take<std::uint8_t>();
  if (value > 1) cursor.refuse(text("a truth of ", int(value), "; it must be 0 or 1"));
  return value == 1;
}

GgufValue take_array(GgufCursor& cursor) {
  const auto kind = cursor.take<std::uint32_t>();
  if (kind == array) cursor.refuse("a list of lists, which is not read");
  if (kind >= kinds) cursor.refuse(text("a list of type ", kind, ", which the format does not have"));
  if (kind == string) {
    std::vector<std::string> words(std::size_t(cursor.take_count(8, "texts")));
    for (std::string& word : words) word = cursor.take_text(gguf_max_head);
    return words;
  }
  const std::int64_t size =
      kind == boolean ? 1 : with_number(kind, [](auto number) { return std::int64_t(sizeof number); });
  std::vector<double> numbers(std::size_t(cursor.take_count(size, "numbers")));
  for (double& number : numbers)
    number = kind == boolean ? take_bool(cursor)
                             : with_number(kind, [&]<class T>(T) { return static_cast<double>(cursor.take<T>()); });
  return numbers;
}

GgufValue take_value(GgufCursor& cursor) {
  const auto kind = cursor.take<std::uint32_t>();
  if (kind >= kinds) cursor.refuse(text("a value of type ", kind, ", which the format does not have"));
  if (kind == string) return cursor.take_text(gguf_max_head);
  if (kind == array) return take_array(cursor);
  if (kind == boolean) return take_bool(cursor);
  return take_number(cursor, kind);
}

/// Names of ggml_type values that are not supported.
std::string foreign_type(std::uint32_t type) {
  static const std::map<std::uint32_t, const char*> names{
      {9, "Q8_1"},   {15, "Q8_K"},  {16, "IQ2_XXS"}, {17, "IQ2_XS"}, {18, "IQ3_XXS"}, {19, "IQ1_S"},
      {21, "IQ3_S"}, {22, "IQ2_S"}, {24, "I8"},      {25, "I16"},    {26, "I32"},     {27, "I64"},
      {28, "F64"},   {29, "IQ1_M"}, {34, "TQ1_0"},   {35, "TQ2_0"},  {39, "MXFP4"}};
  const auto name = names.find(type);
  return name == names.end() ? text("type ", type) : name->second;
}

GgmlType take_type(GgufCursor& cursor, const std::string& tensor) {
  const auto type = cursor.take<std::uint32_t>();
  if (const auto known = ggml_type_of_number(type)) return *known;
  std::string read;
  for (const GgmlType known : ggml_types()) read += (read.empty() ? "" : ", ") + std::string(ggml_name(known));
  cursor.refuse_content(text("tensor \"", tensor, "\" is in ", foreign_type(type), "; the types that are read are ",
                             read,
                             ": take a file in these, or make one from the Hugging Face model, zero_export MODEL "
                             "OUT.gguf --gguf Q8_0"));
}

}  // namespace

std::int64_t GgufEntry::numel() const {
  std::int64_t product = 1;
  for (const std::int64_t size : shape) product *= size;
  return product;
}

bool GgufFile::is_one(const std::string& path) {
  if (!is_file(path)) return false;
  const File file = File::open(path);
  std::array<char, 4> magic{};
  if (file.size() >= 4) file.read_at(magic.data(), 4, 0);
  return std::string_view(magic.data(), 4) == "GGUF";
}

GgufFile::GgufFile(const std::string& path) : file_(File::open(path)) {
  GgufCursor cursor(file_);
  std::array<char, 4> magic{};
  cursor.take(magic.data(), 4);
  if (std::string_view(magic.data(), 4) != "GGUF") throw InputError(text(path, ": is no GGUF file"));
  const auto version = cursor.take<std::uint32_t>();
  if (version != 2 && version != 3)
    cursor.refuse(version != 0 && version % 65536 == 0 ? text("it is big-endian; little-endian files are read")
                                                       : text("version ", version, "; versions 2 and 3 are read"));
  const std::int64_t tensors = cursor.take_count(least_entry, "tensors");
  const std::int64_t keys = cursor.take_count(least_entry, "keys");
  for (std::int64_t i = 0; i < keys; ++i) {
    std::string key = cursor.take_text(max_key);
    GgufValue value = take_value(cursor);
    if (!metadata_.emplace(key, std::move(value)).second) cursor.refuse("key \"" + key + "\" is there twice");
  }
  read_tensors(cursor, tensors);
  place_tensors(cursor.place());
}

void GgufFile::read_tensors(GgufCursor& cursor, std::int64_t count) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max() / 8;  // elements: their bytes fit in 64 bits
  for (std::int64_t i = 0; i < count; ++i) {
    GgufEntry tensor;
    tensor.name = cursor.take_text(max_tensor_name);
    const auto rank = cursor.take<std::uint32_t>();
    if (rank > max_rank) cursor.refuse(text("tensor \"", tensor.name, "\" has ", rank, " dimensions, 4 are possible"));
    std::int64_t numel = 1;
    for (std::uint32_t d = 0; d < rank; ++d) {
      const auto size = cursor.take<std::uint64_t>();
      if (size < 1 || size > std::uint64_t(most / numel))
        cursor.refuse(text("tensor \"", tensor.name, "\" has a dimension of ", size));
      numel *= static_cast<std::int64_t>(size);
      tensor.shape.insert(tensor.shape.begin(), static_cast<std::int64_t>(size));
    }
    tensor.type = take_type(cursor, tensor.name);
    const std::int64_t row = rank > 0 ? tensor.shape.back() : 1;
    if (row % ggml_block(tensor.type) != 0)
      cursor.refuse(text("tensor \"", tensor.name, "\" has rows of ", row, " values, no whole number of blocks of ",
                         ggml_name(tensor.type)));
    const auto offset = cursor.take<std::uint64_t>();
    if (offset > std::uint64_t(file_.size()))
      cursor.refuse(text("tensor \"", tensor.name, "\" begins at ", offset, " of a shorter file; it was cut short"));
    tensor.begin = static_cast<std::int64_t>(offset);
    tensors_.push_back(std::move(tensor));
  }
}

/// Converts offsets in the data to positions in the file; `data`: the end of the header.
void GgufFile::place_tensors(std::int64_t data) {
  const std::int64_t alignment = integer("general.alignment").value_or(32);
  if (alignment < 8 || alignment > 1 << 20 || alignment % 8 != 0)
    throw InputError(text(path(), ": general.alignment = ", alignment, ": must be a multiple of 8"));
  data = (data + alignment - 1) / alignment * alignment;
  std::sort(tensors_.begin(), tensors_.end(), [](const GgufEntry& a, const GgufEntry& b) { return a.begin < b.begin; });
  std::int64_t end = data;
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    GgufEntry& tensor = tensors_[i];
    const auto refuse = [&](const std::string& rule) {
      throw InputError(text(path(), ": tensor \"", tensor.name, "\": ", rule));
    };
    if (tensor.begin % alignment != 0)
      refuse(text("offset ", tensor.begin, " is no multiple of the alignment, ", alignment));
    tensor.begin += data;
    const std::int64_t bytes = ggml_bytes(tensor.type, tensor.numel());
    if (tensor.begin < end) refuse(text("it begins at byte ", tensor.begin, ", inside another one"));
    if (tensor.begin >= end + alignment)  // llama.cpp refuses gaps too
      refuse(text("it begins at byte ", tensor.begin, ", and ", i == 0 ? "the header" : "the tensor before it",
                  " ends at ", end, i == 0 ? "" : ": a type or a shape there is wrong"));
    if (bytes > file_.size() - tensor.begin)
      refuse(text("it takes ", bytes, " bytes from ", tensor.begin, " on, and the file has ", file_.size(),
                  "; it was cut short"));
    end = tensor.begin + bytes;
    if (!index_.emplace(tensor.name, i).second) refuse("is there twice");
  }
}

template <class T>
const T* GgufFile::get(const std::string& key, const char* kind) const {
  const auto found = metadata_.find(key);
  if (found == metadata_.end()) return nullptr;
  const T* value = std::get_if<T>(&found->second);
  if (!value) throw InputError(text(path(), ": ", key, " must be ", kind));
  return value;
}

std::optional<std::int64_t> GgufFile::integer(const std::string& key) const {
  const auto* value = get<std::int64_t>(key, "a whole number");
  return value ? std::optional(*value) : std::nullopt;
}

std::optional<double> GgufFile::number(const std::string& key) const {
  const auto* value = get<double>(key, "a float");
  return value ? std::optional(*value) : std::nullopt;
}

std::optional<bool> GgufFile::flag(const std::string& key) const {
  const auto* value = get<bool>(key, "a truth");
  return value ? std::optional(*value) : std::nullopt;
}

std::optional<std::string> GgufFile::word(const std::string& key) const {
  const auto* value = get<std::string>(key, "a text");
  return value ? std::optional(*value) : std::nullopt;
}

const std::vector<double>* GgufFile::numbers(const std::string& key) const {
  return get<std::vector<double>>(key, "a list of numbers");
}

const std::vector<std::string>* GgufFile::words(const std::string& key) const {
  return get<std::vector<std::string>>(key, "a list of texts");
}

const GgufEntry* GgufFile::find(const std::string& name) const {
  const auto place = index_.find(name);
  return place == index_.end() ? nullptr : &tensors_[place->second];
}

void GgufFile::read(const GgufEntry& tensor, std::int64_t begin, std::int64_t count, void* to) const {
  ZERO_CHECK(begin >= 0 && count >= 0 && begin <= tensor.numel() - count,
             text("elements ", begin, "+", count, " of ", tensor.name));
  file_.read_at(to, ggml_bytes(tensor.type, count), tensor.begin + ggml_bytes(tensor.type, begin));
}

}  // namespace zero
