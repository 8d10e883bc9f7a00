#include "models/formats/safetensors.h"

#include <ATen/ATen.h>

#include <bit>
#include <cstring>

#include "base/error.h"
#include "base/log.h"

namespace zero {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian and read as it lies");

constexpr std::int64_t length_bytes = 8;
constexpr std::int64_t staging_bytes = 1 << 20;  // conversions stay in the cache

std::int64_t read_header_length(const File& file) {
  if (file.size() < length_bytes)
    throw InputError(text(file.path(), ": ", file.size(), " bytes are too few for a safetensors file"));
  std::uint64_t length = 0;
  file.read_at(&length, length_bytes, 0);
  if (length > static_cast<std::uint64_t>(safetensors_max_header))
    throw InputError(text(file.path(), ": header of ", length, " bytes, at most ", safetensors_max_header,
                          " are read; is it a safetensors file?"));
  if (static_cast<std::int64_t>(length) > file.size() - length_bytes)
    throw InputError(text(file.path(), ": header of ", length, " bytes in a file of ", file.size(),
                          "; it was cut short: copy or download it again"));
  return static_cast<std::int64_t>(length);
}

}  // namespace

std::int64_t StoredTensor::numel() const {
  std::int64_t product = 1;
  for (const std::int64_t size : shape) product *= size;
  return product;
}

SafetensorsFile::SafetensorsFile(const std::string& path) : file_(File::open(path)) {
  std::string header(static_cast<std::size_t>(read_header_length(file_)), '\0');
  file_.read_at(header.data(), static_cast<std::int64_t>(header.size()), length_bytes);
  data_begin_ = length_bytes + static_cast<std::int64_t>(header.size());
  header_ = parse_safetensors_header(header, file_.size() - data_begin_, path);
  index_.reserve(header_.tensors.size());
  for (std::size_t i = 0; i < header_.tensors.size(); ++i) index_.emplace(header_.tensors[i].name, i);
}

const StoredTensor* SafetensorsFile::find(const std::string& name) const {
  const auto place = index_.find(name);
  return place == index_.end() ? nullptr : &header_.tensors[place->second];
}

void SafetensorsFile::read(const std::string& name, std::int64_t begin, std::int64_t count,
                           const at::Tensor& out) const {
  const StoredTensor* stored = find(name);
  if (!stored) throw InputError(text(path(), ": has no tensor \"", name, "\""));
  if (!stored->type)
    throw InputError(text(path(), ": tensor \"", name, "\" is ", stored->dtype, ", a type that is not read"));
  ZERO_CHECK(begin >= 0 && count >= 0 && begin <= stored->numel() - count,
             text("elements ", begin, "+", count, " of ", name));
  ZERO_CHECK(out.is_contiguous() && out.device().is_cpu() && out.numel() == count,
             "out must be a contiguous CPU tensor of count elements");
  const at::ScalarType type = *stored->type;
  const std::int64_t width = static_cast<std::int64_t>(at::elementSize(type));
  const std::int64_t offset = data_begin_ + stored->begin + begin * width;
  if (out.scalar_type() == type) {
    file_.read_at(out.data_ptr(), count * width, offset);
    return;
  }
  if (!at::isFloatingType(type) || !at::isFloatingType(out.scalar_type()))
    throw InputError(text(path(), ": tensor \"", name, "\" is ", stored->dtype, ", where a floating type is needed"));
  const std::int64_t chunk = std::min(count, staging_bytes / width);
  const at::Tensor staging = at::empty({chunk}, type);
  const at::Tensor flat = out.view({-1});
  for (std::int64_t done = 0; done < count; done += chunk) {
    const std::int64_t n = std::min(chunk, count - done);
    file_.read_at(staging.data_ptr(), n * width, offset + done * width);
    flat.narrow(0, done, n).copy_(staging.narrow(0, 0, n));
  }
}

at::Tensor SafetensorsFile::read(const std::string& name) const {
  const StoredTensor* stored = find(name);
  if (!stored) throw InputError(text(path(), ": has no tensor \"", name, "\""));
  if (!stored->type)
    throw InputError(text(path(), ": tensor \"", name, "\" is ", stored->dtype, ", a type that is not read"));
  at::Tensor out = at::empty(stored->shape, *stored->type);
  read(name, 0, stored->numel(), out);
  return out;
}

}  // namespace zero
