#include <ATen/ATen.h>

#include <cstdio>
#include <filesystem>
#include <regex>
#include <set>

#include "base/error.h"
#include "base/files/lookup.h"
#include "base/json_text.h"
#include "base/log.h"
#include "models/families/config_json.h"
#include "models/formats/generation_config.h"
#include "models/formats/hf_directory.h"

namespace zero {
namespace {

namespace fs = std::filesystem;

const char* torch_dtype(at::ScalarType type) {
  switch (type) {
    case at::kFloat:
      return "float32";
    case at::kBFloat16:
      return "bfloat16";
    case at::kHalf:
      return "float16";
    case at::kDouble:
      return "float64";
    default:
      throw InternalError("models are written in floating types");
  }
}

/// The model's config.json, with the base's fields that the decoder does not define (pad_token_id, pretraining_tp,
/// ...).
std::string config_json(const ModelConfig& config, at::ScalarType type, const std::string& base) {
  // another spelling of a field that is written, or a reference to files that are not copied
  static const std::set<std::string> dropped{"dtype", "rope_parameters", "quantization_config", "auto_map",
                                             "_name_or_path"};
  auto file = nlohmann::ordered_json::parse(format_model_config(config, torch_dtype(type)));
  const auto further = base.empty() ? nlohmann::json::object()
                                    : read_json_object(base + "/config.json", {.bytes = 1 << 20, .depth = 32});
  // Transformers fills absent fields with the family's defaults, which may include an id outside a smaller vocabulary.
  if (further.empty()) file["pad_token_id"] = nullptr;
  for (const auto& [name, value] : further.items())
    if (name == "use_cache" || (!file.contains(name) && !dropped.contains(name))) file[name] = value;
  return file.dump(2) + "\n";
}

std::string shard_name(std::size_t number, std::size_t count) {
  if (count == 1) return "model.safetensors";
  char name[64];
  std::snprintf(name, sizeof name, "model-%05zu-of-%05zu.safetensors", number + 1, count);
  return name;
}

}  // namespace

HfWriter::HfWriter(const std::string& folder, const ModelConfig& config, const std::vector<TensorSpec>& tensors,
                   HfWriteOptions options)
    : folder_(folder), config_(config), options_(std::move(options)) {
  fs::create_directories(folder);
  plan(tensors);
}

void HfWriter::plan(const std::vector<TensorSpec>& tensors) {
  ZERO_CHECK(!tensors.empty(), folder_ + ": a model without tensors");
  const auto width = static_cast<std::int64_t>(at::elementSize(options_.type));
  for (const auto& tensor : tensors) {
    const std::int64_t bytes = tensor.numel() * width;
    if (shards_.empty() || (shards_.back().bytes > 0 && shards_.back().bytes + bytes > options_.max_shard_bytes))
      shards_.emplace_back();
    shards_.back().tensors.push_back({tensor.name, options_.type, tensor.shape});
    shards_.back().elements += tensor.numel();
    shards_.back().bytes += bytes;
  }
  for (std::size_t i = 0; i < shards_.size(); ++i) shards_[i].name = shard_name(i, shards_.size());
}

void HfWriter::append(const at::Tensor& chunk) {
  const at::Tensor flat = chunk.detach().reshape({-1});
  for (std::int64_t done = 0; done < flat.numel();) {
    ZERO_CHECK(shard_ < shards_.size(), folder_ + ": more elements than the model has");
    const Shard& shard = shards_[shard_];
    if (!writer_) writer_ = std::make_unique<SafetensorsWriter>(folder_ + "/" + shard.name, shard.tensors);
    const std::int64_t n = std::min(flat.numel() - done, shard.elements - written_);
    writer_->append(flat.narrow(0, done, n));
    done += n;
    written_ += n;
    if (written_ == shard.elements) finish_shard();
  }
}

void HfWriter::finish_shard() {
  whole_.push_back(std::move(writer_));
  written_ = 0;
  ++shard_;
}

void HfWriter::finish() {
  ZERO_CHECK(shard_ == shards_.size(), text(folder_, ": ", shards_[shard_].name, " ends at element ", written_, " of ",
                                            shards_[shard_].elements));
  write_tokenizer_files(folder_, options_.tokenizer);
  write_config();
  if (shards_.size() > 1)  // else an earlier index would join shards of two models if the program ended here
    fs::remove(fs::path(folder_) / "model.safetensors.index.json");
  for (const auto& shard : whole_) shard->finish();
  if (shards_.size() > 1) write_index();
  remove_stale();
}

/// The model ends its text with the tokens of its generation_config.json and the end of its chat answers.
void HfWriter::write_config() const {
  write_generation_config(folder_, config_, options_.base, stop_ids_of(config_, options_.base, options_.tokenizer));
  ModelConfig config = config_;
  config.eos_token_ids = stop_ids_of(config_, "", options_.tokenizer);
  write_text_file(folder_ + "/config.json", config_json(config, options_.type, options_.base));
}

void HfWriter::write_index() const {
  nlohmann::json index;
  std::int64_t bytes = 0, elements = 0;
  for (const auto& shard : shards_) {
    bytes += shard.bytes;
    elements += shard.elements;
    for (const auto& tensor : shard.tensors) index["weight_map"][tensor.name] = shard.name;
  }
  index["metadata"] = {{"total_size", bytes}, {"total_parameters", elements}};
  write_text_file(folder_ + "/model.safetensors.index.json", index.dump(2) + "\n");
}

/// Removes an earlier model's weights: readers would prefer an old model.safetensors to a new index.
void HfWriter::remove_stale() const {
  std::set<std::string> kept;
  for (const auto& shard : shards_) kept.insert(shard.name);
  if (shards_.size() > 1) kept.insert("model.safetensors.index.json");
  const std::regex weights(R"(model(-\d{5}-of-\d{5})?\.safetensors(\.index\.json)?)");
  for (const std::string& name : names_in(folder_))
    if (std::regex_match(name, weights) && !kept.contains(name)) fs::remove(fs::path(folder_) / name);
}

}  // namespace zero
