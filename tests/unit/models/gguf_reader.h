#pragma once
// A plain reader of GGUF files, for tests. It follows the format's description, not our writer.
#include <ATen/ATen.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/json_text.h"

namespace zero::test {

struct GgufFile {
  struct Tensor {
    std::vector<std::int64_t> shape;  // rows first
    std::uint32_t type = 0;
    std::uint64_t offset = 0;  // from the beginning of the data
  };
  std::map<std::string, std::string> texts;  // values by key: strings
  std::map<std::string, double> numbers;     // numbers and booleans
  std::map<std::string, std::vector<std::string>> text_lists;
  std::map<std::string, std::vector<double>> number_lists;
  std::map<std::string, Tensor> tensors;
  std::string content;
  std::size_t data = 0;

  explicit GgufFile(const std::string& path) : content(read_text_file(path, 1 << 30)) {
    if (content.substr(0, 4) != "GGUF") throw std::runtime_error("no GGUF");
    place_ = 4;
    if (take<std::uint32_t>() != 3) throw std::runtime_error("no version 3");
    const auto tensor_count = take<std::uint64_t>(), keys = take<std::uint64_t>();
    for (std::uint64_t i = 0; i < keys; ++i) {
      const std::string key = take_text();
      take_value(key, take<std::uint32_t>());
    }
    for (std::uint64_t i = 0; i < tensor_count; ++i) {
      Tensor& tensor = tensors[take_text()];
      tensor.shape.resize(take<std::uint32_t>());
      for (auto size = tensor.shape.rbegin(); size != tensor.shape.rend(); ++size)
        *size = static_cast<std::int64_t>(take<std::uint64_t>());
      tensor.type = take<std::uint32_t>();
      tensor.offset = take<std::uint64_t>();
    }
    data = (place_ + 31) / 32 * 32;
  }

  /// The values of a tensor that is not quantized, in fp32.
  at::Tensor values(const std::string& name) const {
    const Tensor& tensor = tensors.at(name);
    const auto type = tensor.type == 0 ? at::kFloat : tensor.type == 1 ? at::kHalf : at::kBFloat16;
    const at::Tensor out = at::empty(tensor.shape, type);
    std::memcpy(out.data_ptr(), bytes(name, static_cast<std::size_t>(out.nbytes())).data(), out.nbytes());
    return out.to(at::kFloat);
  }
  std::string bytes(const std::string& name, std::size_t count) const {
    if (data + tensors.at(name).offset + count > content.size())
      throw std::runtime_error(name + " ends behind the file");
    return content.substr(data + tensors.at(name).offset, count);
  }

 private:
  template <class T>
  T take() {
    T value;
    if (place_ + sizeof value > content.size()) throw std::runtime_error("cut short");
    std::memcpy(&value, content.data() + place_, sizeof value);
    place_ += sizeof value;
    return value;
  }
  std::string take_text() {
    const auto size = take<std::uint64_t>();
    place_ += size;
    return content.substr(place_ - size, size);
  }
  double take_number(std::uint32_t type) {
    if (type == 4) return take<std::uint32_t>();
    if (type == 5) return take<std::int32_t>();
    if (type == 6) return take<float>();
    if (type == 7) return take<std::uint8_t>();
    throw std::runtime_error("type " + std::to_string(type));
  }
  void take_value(const std::string& key, std::uint32_t type) {
    if (type == 8) {
      texts[key] = take_text();
    } else if (type == 9) {
      const auto inner = take<std::uint32_t>();
      for (auto left = take<std::uint64_t>(); left > 0; --left)
        if (inner == 8)
          text_lists[key].push_back(take_text());
        else
          number_lists[key].push_back(take_number(inner));
    } else {
      numbers[key] = take_number(type);
    }
  }
  std::size_t place_ = 0;
};

}  // namespace zero::test
