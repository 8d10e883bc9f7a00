#include "models/formats/gguf/gguf_weights.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <set>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "models/families/config_json.h"
#include "models/formats/gguf/gguf_config.h"
#include "models/formats/gguf_model.h"
#include "models/ggml_values.h"

namespace zero {
namespace {

constexpr std::int64_t staging_elements = 1 << 18;  // conversion stays in the cache

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string words;
  for (const std::int64_t size : shape) words += (words.empty() ? "[" : ", ") + std::to_string(size);
  return words + "]";
}

}  // namespace

GgufWeights::GgufWeights(std::shared_ptr<const GgufFile> file, const ModelConfig& config)
    : file_(std::move(file)),
      head_dim_(config.head_dim),
      rotates_neighbours_(architecture_of(*file_).rotates_neighbours) {}

GgufModel open_gguf_model(const std::string& path) {
  GgufModel model;
  model.file = std::make_shared<GgufFile>(path);
  model.config = parse_model_config(config_json_of(*model.file), path);
  model.weights = std::make_shared<GgufWeights>(model.file, model.config);
  return model;
}

void GgufWeights::check(const std::vector<TensorSpec>& tensors) {
  std::set<std::string> asked{"rope_freqs.weight"};  // what config_json_of has read
  for (const TensorSpec& tensor : tensors) {
    const std::string name = gguf_name(tensor.name);
    const GgufEntry* stored = file_->find(name);
    if (!stored)
      throw InputError(text(file_->path(), ": tensor \"", name, "\" ", shape_text(tensor.shape), " is missing"));
    if (stored->shape != tensor.shape)
      throw InputError(text(file_->path(), ": tensor \"", name, "\" has the shape ", shape_text(stored->shape),
                            ", but the metadata make it ", shape_text(tensor.shape)));
    asked.insert(name);
  }
  for (const GgufEntry& stored : file_->tensors())
    if (!asked.contains(stored.name))
      throw InputError(text(file_->path(), ": the model has no place for tensor \"", stored.name, "\""));
}

std::optional<GgmlType> GgufWeights::type_of(const TensorSpec& tensor) const {
  const GgufEntry* stored = file_->find(gguf_name(tensor.name));
  return stored ? std::optional(stored->type) : std::nullopt;
}

const GgufEntry& GgufWeights::entry_of(const TensorSpec& tensor) const {
  const GgufEntry* stored = file_->find(gguf_name(tensor.name));
  if (!stored) throw InputError(text(file_->path(), ": has no tensor \"", gguf_name(tensor.name), "\""));
  return *stored;
}

void GgufWeights::for_each_stored_run(
    const TensorSpec& tensor, std::int64_t begin, std::int64_t count,
    const std::function<void(std::int64_t, std::int64_t, std::int64_t)>& visit) const {
  if (!rotates_neighbours_ || !is_rotated(tensor.name)) return visit(begin, 0, count);
  const std::int64_t columns = tensor.shape.back(), half = head_dim_ / 2;
  for (std::int64_t done = 0; done < count;) {
    const std::int64_t row = (begin + done) / columns, column = (begin + done) % columns, in_head = row % head_dim_;
    const std::int64_t stored_row = row - in_head + in_head % half * 2 + in_head / half,
                       run = std::min(count - done, columns - column);
    visit(stored_row * columns + column, done, run);
    done += run;
  }
}

void GgufWeights::read(const TensorSpec& tensor, std::int64_t begin, std::int64_t count, const at::Tensor& out) {
  const GgufEntry& stored = entry_of(tensor);
  const std::int64_t block = ggml_block(stored.type), staged = staging_elements / block * block;
  std::vector<std::uint8_t> bytes;
  const at::Tensor flat = out.view({-1});
  for_each_stored_run(tensor, begin, count, [&](std::int64_t from, std::int64_t done, std::int64_t run) {
    for (const std::int64_t end = from + run; from < end;) {  // whole blocks are read, and what was asked for is kept
      const std::int64_t first = from / block * block, stop = std::min(end, first + staged),
                         numel = (stop - first + block - 1) / block * block;
      bytes.resize(std::size_t(ggml_bytes(stored.type, numel)));
      file_->read(stored, first, numel, bytes.data());
      const at::Tensor values = at::empty({numel}, flat.options());
      from_ggml(bytes.data(), stored.type, values);
      flat.narrow(0, done, stop - from).copy_(values.narrow(0, from - first, stop - from));
      done += stop - from;
      from = stop;
    }
  });
}

void GgufWeights::read_as(const TensorSpec& tensor, GgmlType type, std::int64_t begin, std::int64_t count,
                          const at::Tensor& out) {
  const GgufEntry& stored = entry_of(tensor);
  if (stored.type != type) return WeightSource::read_as(tensor, type, begin, count, out);
  auto* to = out.data_ptr<std::uint8_t>();
  for_each_stored_run(tensor, begin, count, [&](std::int64_t from, std::int64_t done, std::int64_t run) {
    file_->read(stored, from, run, to + ggml_bytes(type, done));
  });
}

}  // namespace zero
