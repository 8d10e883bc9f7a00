#include "models/formats/gguf_model.h"

#include <ATen/ATen.h>

#include "base/error.h"
#include "base/log.h"
#include "models/formats/gguf/gguf_check.h"
#include "models/formats/gguf/gguf_hyperparameters.h"
#include "models/formats/gguf/gguf_layout.h"
#include "models/formats/gguf/gguf_rope.h"
#include "models/formats/gguf/tokenizer/tokenizer_keys.h"
#include "models/formats/gguf_writer.h"
#include "models/weight_chunks.h"

namespace zero {
namespace {

std::int64_t file_type(GgmlType type) {  // enum llama_ftype
  switch (type) {
    case GgmlType::f32:
      return 0;
    case GgmlType::f16:
      return 1;
    case GgmlType::q8_0:
      return 7;
    case GgmlType::bf16:
      return 32;
    case GgmlType::q4_0:
      return 2;
    default:
      throw InternalError("no GGUF file is written in this type");
  }
}

GgufMetadata metadata_of(const ModelConfig& config, const GgufOptions& options) {
  GgufMetadata metadata;
  metadata.add("general.architecture", gguf_family(config.model_type).gguf.name);
  metadata.add("general.type", "model");
  const GgufTokenizerKeys tokenizer(options.tokenizer, config);
  if (const std::string name = tokenizer.model_name(options.name); !name.empty()) metadata.add("general.name", name);
  metadata.add_uint32("general.file_type", file_type(options.type));
  metadata.add_uint32("general.quantization_version", 2);
  add_hyperparameters(metadata, config);
  tokenizer.add_to(metadata);
  return metadata;
}

GgmlType type_of(const GgufPlace& place, const std::vector<std::int64_t>& shape, GgmlType wanted) {
  if (shape.size() < 2 || place.name == "position_embd.weight") return GgmlType::f32;
  return shape.back() % ggml_block(wanted) == 0 ? wanted : GgmlType::f16;
}

at::ScalarType range_of(GgmlType type) {  // blocks store part of a value in fp16, so this bound is safe
  return type == GgmlType::f16 || ggml_block(type) > 1 ? at::kHalf : at::kFloat;
}

/// A tensor of the model and its tensor in the file.
struct Written {
  TensorSpec tensor;
  GgufPlace place;
  GgufTensor there;
};

std::vector<Written> tensors_in_file(const Model& model, GgmlType type) {
  const GgufLayout layout(model.config);
  std::vector<Written> all;
  for (const TensorSpec& tensor : tensors_of(model)) {
    const GgufPlace place = layout.place(tensor.name);
    const std::vector<std::int64_t> shape = shape_in_file(tensor, place);
    all.push_back({tensor, place, {place.name, shape, type_of(place, shape, type)}});
  }
  const Family& family = gguf_family(model.config.model_type);
  if (family.gguf.needs_head && model.config.tie_word_embeddings) {
    Written head = all.front();
    head.there.name = layout.place(family.names.head + ".weight").name;
    all.push_back(std::move(head));
  }
  return all;
}

void append(GgufWriter& writer, WeightSource& weights, const Written& written, std::int64_t head_dim) {
  ChunkOptions chunks{range_of(written.there.type)};
  if (written.place.rotated) chunks.rows_together = head_dim;
  if (written.place.transposed) chunks.rows_together = written.tensor.shape.front();
  read_in_chunks(weights, written.tensor, chunks,
                 [&](const at::Tensor& values) { writer.append(in_file_form(values, written.place, head_dim)); });
}

}  // namespace

void write_gguf(const std::string& path, const Model& model, WeightSource& weights, const GgufOptions& options) {
  check_gguf(model.config);
  weights.check(tensors_of(model));
  weights.check_values();
  const std::vector<RopeFactors> factors = rope_factors(model.config);
  const std::vector<Written> tensors = tensors_in_file(model, options.type);
  std::vector<GgufTensor> described;
  for (const RopeFactors& each : factors) described.push_back({each.name, {std::int64_t(each.values.size())}});
  std::int64_t without_blocks = 0;
  for (const Written& written : tensors) {
    described.push_back(written.there);
    without_blocks += written.there.type == GgmlType::f16 && options.type != GgmlType::f16;
  }
  if (without_blocks > 0)
    log_info("note: ", without_blocks, " matrices are F16: their rows are no multiple of ", q8_block);

  GgufWriter writer(path, metadata_of(model.config, options), described);
  for (const RopeFactors& each : factors) writer.append(at::tensor(at::ArrayRef<float>(each.values), at::kFloat));
  for (const Written& written : tensors) append(writer, weights, written, model.config.head_dim);
  writer.finish();
}

}  // namespace zero
