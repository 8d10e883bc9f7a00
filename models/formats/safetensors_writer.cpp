#include "models/formats/safetensors_writer.h"

#include <ATen/ATen.h>

#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/log.h"
#include "models/formats/safetensors.h"
#include "models/formats/safetensors_types.h"

namespace zero {
namespace {

std::int64_t numel_of(const SafetensorsSpec& spec) {
  std::int64_t product = 1;
  for (const std::int64_t size : spec.shape) product *= size;
  return product;
}

}  // namespace

SafetensorsWriter::SafetensorsWriter(const std::string& path, std::vector<SafetensorsSpec> specs,
                                     std::map<std::string, std::string> metadata)
    : specs_(std::move(specs)), file_(path) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::set<std::string> names;
  for (const auto& spec : specs_) {
    ZERO_CHECK(names.insert(spec.name).second && spec.name != "__metadata__", "tensor " + spec.name + " stands twice");
    const std::int64_t end = bytes_ + numel_of(spec) * static_cast<std::int64_t>(at::elementSize(spec.type));
    header[spec.name] = {
        {"dtype", safetensors_name(spec.type)}, {"shape", spec.shape}, {"data_offsets", {bytes_, end}}};
    bytes_ = end;
  }
  std::string content = header.dump();
  content.resize((content.size() + 7) / 8 * 8, ' ');  // aligns the data, as the reference implementation does
  ZERO_CHECK(static_cast<std::int64_t>(content.size()) <= safetensors_max_header,
             path + ": too many tensors for one header");
  const std::uint64_t length = content.size();
  file_.append(&length, sizeof length);
  file_.append(content.data(), static_cast<std::int64_t>(content.size()));
}

void SafetensorsWriter::append(const at::Tensor& chunk) {
  const at::Tensor flat = chunk.detach().reshape({-1});
  std::int64_t done = 0;
  while (done < flat.numel()) {
    while (tensor_ < specs_.size() && numel_of(specs_[tensor_]) == 0) ++tensor_;
    ZERO_CHECK(tensor_ < specs_.size(), file_.path() + ": more elements than the header announces");
    const std::int64_t n = std::min(flat.numel() - done, numel_of(specs_[tensor_]) - element_);
    append_converted(flat.narrow(0, done, n));
    done += n;
    element_ += n;
    if (element_ == numel_of(specs_[tensor_])) {
      ++tensor_;
      element_ = 0;
    }
  }
}

void SafetensorsWriter::append_converted(const at::Tensor& flat) {
  const at::ScalarType type = specs_[tensor_].type;
  const auto width = static_cast<std::int64_t>(at::elementSize(type));
  if (flat.scalar_type() == type && flat.device().is_cpu()) {
    const at::Tensor whole = flat.contiguous();
    file_.append(whole.data_ptr(), whole.numel() * width);
    return;
  }
  ZERO_CHECK(flat.scalar_type() == type || (at::isFloatingType(type) && at::isFloatingType(flat.scalar_type())),
             text(specs_[tensor_].name, ": ", c10::toString(flat.scalar_type()), " is not converted to ",
                  c10::toString(type)));
  constexpr std::int64_t elements = 1 << 18;
  if (!staging_.defined() || staging_.scalar_type() != type) staging_ = at::empty({elements}, type);
  for (std::int64_t done = 0; done < flat.numel(); done += elements) {
    const std::int64_t n = std::min(elements, flat.numel() - done);
    staging_.narrow(0, 0, n).copy_(flat.narrow(0, done, n));
    file_.append(staging_.data_ptr(), n * width);
  }
}

void SafetensorsWriter::finish() {
  while (tensor_ < specs_.size() && numel_of(specs_[tensor_]) == 0) ++tensor_;
  ZERO_CHECK(tensor_ == specs_.size(),
             text(file_.path(), ": tensor ", specs_[tensor_].name, " is missing from element ", element_, " on"));
  file_.publish();
}

}  // namespace zero
