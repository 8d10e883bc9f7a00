#include "models/formats/gguf_writer.h"

#include <ATen/ATen.h>

#include <set>

#include "base/error.h"
#include "base/log.h"
#include "models/ggml_values.h"

namespace zero {
namespace {

constexpr std::int64_t alignment = 32;  // if the file does not set another
constexpr std::size_t max_name = 64;    // GGML_MAX_NAME, with its terminating zero

std::int64_t numel_of(const GgufTensor& tensor) {
  std::int64_t product = 1;
  for (const std::int64_t size : tensor.shape) product *= size;
  return product;
}

std::int64_t aligned(std::int64_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

}  // namespace

GgufWriter::GgufWriter(const std::string& path, const GgufMetadata& metadata, std::vector<GgufTensor> tensors)
    : tensors_(std::move(tensors)), file_(path) {
  std::string head = "GGUF";
  append_number<std::uint32_t>(head, 3);
  append_number<std::uint64_t>(head, tensors_.size());
  append_number<std::uint64_t>(head, metadata.count());
  head += metadata.bytes();
  std::set<std::string> names;
  std::int64_t offset = 0;
  for (const GgufTensor& tensor : tensors_) {
    ZERO_CHECK(tensor.name.size() < max_name && names.insert(tensor.name).second,
               "tensor " + tensor.name + ": name too long or given twice");
    append_text(head, tensor.name);
    append_number(head, static_cast<std::uint32_t>(tensor.shape.size()));
    for (auto size = tensor.shape.rbegin(); size != tensor.shape.rend(); ++size)
      append_number<std::uint64_t>(head, *size);
    append_number(head, static_cast<std::uint32_t>(tensor.type));
    append_number<std::uint64_t>(head, offset);
    offset += aligned(ggml_bytes(tensor.type, numel_of(tensor)));
  }
  file_.append(head.data(), static_cast<std::int64_t>(head.size()));
  written_ = static_cast<std::int64_t>(head.size());
  pad();
}

void GgufWriter::pad() {
  static constexpr char zeros[alignment] = {};
  const std::int64_t missing = aligned(written_) - written_;
  if (missing > 0) file_.append(zeros, missing);
  written_ += missing;
}

void GgufWriter::append(const at::Tensor& values) {
  ZERO_CHECK(tensor_ < tensors_.size(), file_.path() + ": more values than the header announces");
  const GgufTensor& tensor = tensors_[tensor_];
  ZERO_CHECK(element_ + values.numel() <= numel_of(tensor), tensor.name + ": more values than it has");
  const at::Tensor bytes = to_ggml(values, tensor.type);
  file_.append(bytes.const_data_ptr(), bytes.numel());
  written_ += bytes.numel();
  element_ += values.numel();
  if (element_ < numel_of(tensor)) return;
  pad();
  ++tensor_;
  element_ = 0;
}

void GgufWriter::finish() {
  ZERO_CHECK(tensor_ == tensors_.size(),
             text(file_.path(), ": tensor ", tensors_[tensor_].name, " is missing from value ", element_, " on"));
  file_.publish();
}

}  // namespace zero
