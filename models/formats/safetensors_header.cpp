// Parses the header with a SAX handler for the only valid shape: {"name": {"dtype": ..., "shape": [...],
// "data_offsets": [begin, end]}, "__metadata__": {"key": "value"}}. It stores only the result, so memory is a small
// multiple of the header's size.
#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/log.h"
#include "models/formats/safetensors.h"
#include "models/formats/safetensors_types.h"

namespace zero {
namespace {

class HeaderReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  HeaderReader(SafetensorsHeader& header, const std::string& path) : header_(header), path_(path) {}

  bool start_object(std::size_t) override {
    if (place_ == Place::start)
      place_ = Place::top;
    else if (place_ == Place::tensor_value)
      begin_tensor();
    else if (place_ == Place::metadata_value)
      place_ = Place::metadata;
    else
      refuse("has an object where none belongs");
    return true;
  }
  bool end_object() override {
    if (place_ == Place::tensor) end_tensor();
    place_ = place_ == Place::top ? Place::end : Place::top;
    return true;
  }
  bool key(string_t& name) override {
    if (place_ == Place::top) {
      name_ = name;
      if (name == "__metadata__") {
        if (metadata_seen_) refuse("stands twice");
        metadata_seen_ = true;
        place_ = Place::metadata_value;
      } else {
        place_ = Place::tensor_value;
      }
    } else if (place_ == Place::metadata) {
      metadata_key_ = name;
      if (header_.metadata.contains(name)) refuse(text("has the key \"", name, "\" twice"));
    } else {
      begin_field(name);
    }
    return true;
  }
  bool start_array(std::size_t) override {
    if (place_ == Place::shape_value)
      place_ = Place::shape;
    else if (place_ == Place::offsets_value)
      place_ = Place::offsets;
    else
      refuse("has an array where none belongs");
    return true;
  }
  bool end_array() override {
    if (place_ == Place::offsets && offsets_.size() != 2) refuse("data_offsets must be two numbers");
    place_ = Place::tensor;
    return true;
  }
  bool number_unsigned(number_unsigned_t value) override {
    if (value > static_cast<number_unsigned_t>(std::numeric_limits<std::int64_t>::max()))
      refuse(text("number ", value, " is too large"));
    const auto number = static_cast<std::int64_t>(value);
    if (place_ == Place::shape) {
      tensor_.shape.push_back(number);
      if (tensor_.shape.size() > safetensors_max_rank)
        refuse(text("has more than ", safetensors_max_rank, " dimensions"));
    } else if (place_ == Place::offsets) {
      offsets_.push_back(number);
      if (offsets_.size() > 2) refuse("data_offsets must be two numbers");
    } else {
      refuse("has a number where none belongs");
    }
    return true;
  }
  bool string(string_t& value) override {
    if (place_ == Place::dtype_value) {
      tensor_.dtype = value.substr(0, 64);
      place_ = Place::tensor;
    } else if (place_ == Place::metadata) {
      header_.metadata.emplace(metadata_key_, value);
    } else {
      refuse("has a string where none belongs");
    }
    return true;
  }
  bool number_integer(number_integer_t value) override { refuse(text("has the negative number ", value)); }
  bool number_float(number_float_t, const string_t& value) override {
    refuse(text("has ", value.substr(0, 40), ", not a whole number in range"));
  }
  bool boolean(bool) override { refuse("has a boolean where none belongs"); }
  bool null() override { refuse("has a null where none belongs"); }
  bool binary(binary_t&) override { refuse("has binary data"); }
  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception& error) override {
    throw InputError(text(path_, ": header is not valid JSON: ", error.what()));
  }

 private:
  enum class Place {
    start,
    top,
    tensor_value,
    tensor,
    dtype_value,
    shape_value,
    shape,
    offsets_value,
    offsets,
    metadata_value,
    metadata,
    end
  };

  [[noreturn]] void refuse(const std::string& what) const {
    throw InputError(text(path_, ": header: ", name_.empty() ? "" : "\"" + name_.substr(0, 200) + "\" ", what));
  }
  void begin_tensor() {
    if (name_.size() > safetensors_max_name) refuse(text("is a name of more than ", safetensors_max_name, " bytes"));
    if (header_.tensors.size() >= safetensors_max_tensors)
      refuse(text("comes after ", safetensors_max_tensors, " tensors, the most that are read"));
    tensor_ = StoredTensor{};
    tensor_.name = name_;
    offsets_.clear();
    seen_ = {};
    place_ = Place::tensor;
  }
  void begin_field(const std::string& name) {
    const int field = name == "dtype" ? 0 : name == "shape" ? 1 : name == "data_offsets" ? 2 : -1;
    if (field < 0) refuse(text("has the unknown field \"", name.substr(0, 100), "\""));
    if (seen_[field]) refuse(text("has the field \"", name, "\" twice"));
    seen_[field] = true;
    constexpr Place places[] = {Place::dtype_value, Place::shape_value, Place::offsets_value};
    place_ = places[field];
  }
  void end_tensor() {
    if (!(seen_[0] && seen_[1] && seen_[2])) refuse("lacks dtype, shape or data_offsets");
    tensor_.begin = offsets_[0];
    tensor_.end = offsets_[1];
    header_.tensors.push_back(std::move(tensor_));
  }

  SafetensorsHeader& header_;
  const std::string& path_;
  Place place_ = Place::start;
  std::string name_, metadata_key_;
  bool metadata_seen_ = false;
  StoredTensor tensor_;
  std::vector<std::int64_t> offsets_;
  std::array<bool, 3> seen_{};
};

/// The size in bytes by dtype and shape. Rejects unknown types, overflow, and sizes that are not whole bytes.
std::int64_t claimed_bytes(StoredTensor& tensor, const std::string& path) {
  const auto refuse = [&](const std::string& what) {
    throw InputError(text(path, ": tensor \"", tensor.name, "\" ", what));
  };
  const SafetensorsType* type = find_safetensors_type(tensor.dtype);
  if (!type) refuse(text("has the unknown dtype \"", tensor.dtype, "\""));
  tensor.type = type->type;
  std::int64_t bits = type->bits;
  for (const std::int64_t size : tensor.shape)
    if (__builtin_mul_overflow(bits, size, &bits)) refuse("has a shape whose size overflows");
  // a zero size makes the product zero, but refuse other sizes that overflow as well
  std::int64_t product = type->bits;
  for (const std::int64_t size : tensor.shape)
    if (size != 0 && __builtin_mul_overflow(product, size, &product)) refuse("has a shape whose size overflows");
  if (bits % 8 != 0) refuse("does not fill whole bytes");
  return bits / 8;
}

void check_layout(SafetensorsHeader& header, std::int64_t data_bytes, const std::string& path) {
  std::stable_sort(header.tensors.begin(), header.tensors.end(),
                   [](const auto& a, const auto& b) { return std::pair(a.begin, a.end) < std::pair(b.begin, b.end); });
  std::vector<std::string_view> names;
  names.reserve(header.tensors.size());
  std::int64_t expected = 0;
  for (auto& tensor : header.tensors) {
    const auto refuse = [&](const std::string& what) {
      throw InputError(text(path, ": tensor \"", tensor.name, "\" ", what));
    };
    if (tensor.begin > tensor.end) refuse(text("ends at byte ", tensor.end, " before it begins at ", tensor.begin));
    if (tensor.begin != expected)
      refuse(text("begins at byte ", tensor.begin, " of the data, not at ", expected,
                  " where the one before ends: holes and overlaps are refused"));
    const std::int64_t bytes = claimed_bytes(tensor, path);
    if (tensor.end - tensor.begin != bytes)
      refuse(text("takes ", tensor.end - tensor.begin, " bytes, but its dtype and shape make ", bytes));
    expected = tensor.end;
    names.push_back(tensor.name);
  }
  if (expected != data_bytes)
    throw InputError(text(path, ": the header announces ", expected, " bytes of data, the file holds ", data_bytes,
                          data_bytes < expected ? "; it was cut short: copy or download it again" : ""));
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end()) throw InputError(text(path, ": tensor \"", *twice, "\" stands twice"));
}

}  // namespace

SafetensorsHeader parse_safetensors_header(std::string_view content, std::int64_t data_bytes, const std::string& path) {
  if (content.empty() || content.front() != '{')
    throw InputError(text(path, ": header does not start with '{'; is it a safetensors file?"));
  // the parser stops at a zero byte and would ignore the rest
  if (content.find('\0') != std::string_view::npos)
    throw InputError(text(path, ": header is not valid JSON: has a zero byte"));
  SafetensorsHeader header;
  HeaderReader reader(header, path);
  nlohmann::json::sax_parse(content.begin(), content.end(), &reader);
  check_layout(header, data_bytes, path);
  return header;
}

}  // namespace zero
