#include "models/formats/gguf/gguf_weights.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <set>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "models/families/config_json.h"
#include "models/formats/gguf/gguf_config.h"
#include "models/formats/gguf/gguf_rope.h"
#include "models/ggml_values.h"

namespace zero {
namespace {

constexpr std::int64_t staging_elements = 1 << 18;  // conversions stay in the cache

}  // namespace

GgufWeights::GgufWeights(std::shared_ptr<const GgufFile> file, const ModelConfig& config, UnusedTensors unused)
    : file_(std::move(file)), layout_(config), head_dim_(config.head_dim), unused_(unused) {}

GgufModel open_gguf_model(const std::string& path, UnusedTensors unused) {
  GgufModel model;
  model.file = std::make_shared<GgufFile>(path);
  model.config = parse_model_config(config_json_of(*model.file), path);
  model.weights = std::make_shared<GgufWeights>(model.file, model.config, unused);
  return model;
}

void GgufWeights::check(const std::vector<TensorSpec>& tensors) {
  std::set<std::string> asked;
  for (const std::string& name : rope_factor_names()) asked.insert(name);  // config_json_of has read them
  for (const TensorSpec& tensor : tensors) {
    const GgufPlace place = layout_.place(tensor.name);
    const std::vector<std::int64_t> shape = shape_in_file(tensor, place);
    const GgufEntry* stored = file_->find(place.name);
    if (!stored)
      throw InputError(text(file_->path(), ": tensor \"", place.name, "\" ", shape_text(shape), " is missing"));
    if (stored->shape != shape)
      throw InputError(text(file_->path(), ": tensor \"", place.name, "\" has the shape ", shape_text(stored->shape),
                            ", but the metadata make it ", shape_text(shape)));
    asked.insert(place.name);
  }
  if (settled_) return;
  std::vector<std::string> rest;
  for (const GgufEntry& stored : file_->tensors())
    if (!asked.contains(stored.name)) rest.push_back(stored.name);
  settle_unused(file_->path(), rest, {}, unused_);
  settled_ = true;
}

std::optional<GgmlType> GgufWeights::type_of(const TensorSpec& tensor) const {
  const GgufPlace place = layout_.place(tensor.name);
  const GgufEntry* stored = file_->find(place.name);
  return stored && !place.transposed && !place.plus_one ? std::optional(stored->type) : std::nullopt;
}

const GgufEntry& GgufWeights::entry_of(const TensorSpec& tensor) const {
  const std::string name = layout_.place(tensor.name).name;
  const GgufEntry* stored = file_->find(name);
  if (!stored) throw InputError(text(file_->path(), ": has no tensor \"", name, "\""));
  return *stored;
}

void GgufWeights::for_each_stored_run(
    const TensorSpec& tensor, std::int64_t begin, std::int64_t count,
    const std::function<void(std::int64_t, std::int64_t, std::int64_t)>& visit) const {
  if (!layout_.place(tensor.name).rotated) return visit(begin, 0, count);
  const std::int64_t columns = tensor.shape.size() > 1 ? tensor.shape.back() : 1, half = head_dim_ / 2;
  for (std::int64_t done = 0; done < count;) {
    const std::int64_t row = (begin + done) / columns, column = (begin + done) % columns, in_head = row % head_dim_;
    const std::int64_t stored_row = row - in_head + in_head % half * 2 + in_head / half,
                       run = std::min(count - done, columns - column);
    visit(stored_row * columns + column, done, run);
    done += run;
  }
}

void GgufWeights::read_stored(const GgufEntry& stored, std::int64_t begin, std::int64_t count,
                              const at::Tensor& out) const {
  const std::int64_t block = ggml_block(stored.type), staged = staging_elements / block * block;
  std::vector<std::uint8_t> bytes;
  for (std::int64_t from = begin; from < begin + count;) {  // reads whole blocks and keeps the requested part
    const std::int64_t first = from / block * block, stop = std::min(begin + count, first + staged),
                       numel = (stop - first + block - 1) / block * block;
    bytes.resize(std::size_t(ggml_bytes(stored.type, numel)));
    file_->read(stored, first, numel, bytes.data());
    const at::Tensor values = at::empty({numel}, out.options());
    from_ggml(bytes.data(), stored.type, values);
    out.narrow(0, from - begin, stop - from).copy_(values.narrow(0, from - first, stop - from));
    from = stop;
  }
}

/// The requested rows of the tensor are columns in the file, so a part of each of the file's rows is read.
void GgufWeights::read_transposed(const GgufEntry& stored, const TensorSpec& tensor, std::int64_t begin,
                                  std::int64_t count, const at::Tensor& out) const {
  const std::int64_t in = tensor.shape.at(0), columns = tensor.shape.at(1), first = begin / columns,
                     rows = (begin + count - 1) / columns - first + 1;
  const at::Tensor part = at::empty({columns, rows}, out.options());
  for (std::int64_t column = 0; column < columns; ++column)
    read_stored(stored, column * in + first, rows, part[column]);
  out.copy_(part.t().reshape({-1}).narrow(0, begin - first * columns, count));
}

void GgufWeights::read(const TensorSpec& tensor, std::int64_t begin, std::int64_t count, const at::Tensor& out) {
  const GgufEntry& stored = entry_of(tensor);
  const GgufPlace place = layout_.place(tensor.name);
  const at::Tensor flat = out.view({-1});
  if (count == 0) return;
  if (place.transposed) return read_transposed(stored, tensor, begin, count, flat);
  if (place.plus_one) {
    const at::Tensor values = at::empty({count}, at::kFloat);
    read_stored(stored, begin, count, values);
    flat.copy_(values - 1);
    return;
  }
  for_each_stored_run(tensor, begin, count, [&](std::int64_t from, std::int64_t done, std::int64_t run) {
    read_stored(stored, from, run, flat.narrow(0, done, run));
  });
}

void GgufWeights::read_as(const TensorSpec& tensor, GgmlType type, std::int64_t begin, std::int64_t count,
                          const at::Tensor& out) {
  if (type_of(tensor) != type) return WeightSource::read_as(tensor, type, begin, count, out);
  const GgufEntry& stored = entry_of(tensor);
  auto* to = out.data_ptr<std::uint8_t>();
  for_each_stored_run(tensor, begin, count, [&](std::int64_t from, std::int64_t done, std::int64_t run) {
    file_->read(stored, from, run, to + ggml_bytes(type, done));
  });
}

}  // namespace zero
