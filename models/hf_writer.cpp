#include <ATen/ATen.h>

#include <cstdio>
#include <filesystem>
#include <regex>
#include <set>

#include "comm/error.h"
#include "comm/log.h"
#include "models/hf_directory.h"
#include "models/json_text.h"

namespace zero {
namespace {

namespace fs = std::filesystem;

const char* torch_dtype(at::ScalarType type) {
  switch (type) {
    case at::kFloat: return "float32";
    case at::kBFloat16: return "bfloat16";
    case at::kHalf: return "float16";
    case at::kDouble: return "float64";
    default: throw InternalError("models are written in floating types");
  }
}

std::string shard_name(std::size_t number, std::size_t count) {
  if (count == 1) return "model.safetensors";
  char name[64];
  std::snprintf(name, sizeof name, "model-%05zu-of-%05zu.safetensors", number + 1, count);
  return name;
}

void copy_to(const fs::path& from, const fs::path& to) {
  if (fs::exists(to) && fs::equivalent(from, to)) return;
  write_text_file(to.string(), read_text_file(from.string()));
}

}  // namespace

const std::vector<std::string>& tokenizer_file_names() {
  static const std::vector<std::string> names{"tokenizer.model",         "tokenizer.json",      "tokenizer_config.json", "added_tokens.json",
                                              "special_tokens_map.json", "chat_template.jinja", "chat_template.json",    "vocab.json",
                                              "merges.txt"};
  return names;
}

HfWriter::HfWriter(const std::string& folder, const ModelConfig& config, const std::vector<TensorSpec>& tensors, HfWriteOptions options)
    : folder_(folder), config_(config), options_(std::move(options)) {
  fs::create_directories(folder);
  plan(tensors);
}

void HfWriter::plan(const std::vector<TensorSpec>& tensors) {
  ZERO_CHECK(!tensors.empty(), folder_ + ": a model without tensors");
  const auto width = static_cast<std::int64_t>(at::elementSize(options_.type));
  for (const auto& tensor : tensors) {
    const std::int64_t bytes = tensor.numel() * width;
    if (shards_.empty() || (shards_.back().bytes > 0 && shards_.back().bytes + bytes > options_.max_shard_bytes)) shards_.emplace_back();
    shards_.back().tensors.push_back({tensor.name, options_.type, tensor.shape});
    shards_.back().elements += tensor.numel();
    shards_.back().bytes += bytes;
  }
  for (std::size_t i = 0; i < shards_.size(); ++i) shards_[i].name = shard_name(i, shards_.size());
}

void HfWriter::append(const at::Tensor& piece) {
  const at::Tensor flat = piece.detach().reshape({-1});
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
  writer_->finish();
  writer_.reset();
  written_ = 0;
  ++shard_;
}

void HfWriter::finish() {
  ZERO_CHECK(shard_ == shards_.size(), text(folder_, ": ", shards_[shard_].name, " ends at element ", written_, " of ", shards_[shard_].elements));
  copy_tokenizer();
  write_generation_config();
  write_text_file(folder_ + "/config.json", format_model_config(config_, torch_dtype(options_.type)));
  if (shards_.size() > 1) write_index();
  remove_stale();
}

/// A base's own knows stop tokens and a way of drawing that config.json does not.
void HfWriter::write_generation_config() const {
  const std::string name = "/generation_config.json";
  if (!options_.base.empty() && fs::exists(options_.base + name)) return copy_to(options_.base + name, folder_ + name);
  nlohmann::ordered_json generation;
  generation["_from_model_config"] = true;
  if (config_.bos_token_id) generation["bos_token_id"] = *config_.bos_token_id;
  if (config_.eos_token_ids.size() == 1) generation["eos_token_id"] = config_.eos_token_ids.front();
  if (config_.eos_token_ids.size() > 1) generation["eos_token_id"] = config_.eos_token_ids;
  write_text_file(folder_ + name, generation.dump(2) + "\n");
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

/// Weights of an earlier model: a reader would take an old model.safetensors before a new index.
void HfWriter::remove_stale() const {
  std::set<std::string> kept;
  for (const auto& shard : shards_) kept.insert(shard.name);
  if (shards_.size() > 1) kept.insert("model.safetensors.index.json");
  const std::regex weights(R"(model(-\d{5}-of-\d{5})?\.safetensors(\.index\.json)?)");
  std::vector<fs::path> stale;
  for (const auto& entry : fs::directory_iterator(folder_)) {
    const std::string name = entry.path().filename().string();
    if (std::regex_match(name, weights) && !kept.contains(name)) stale.push_back(entry.path());
  }
  for (const auto& path : stale) fs::remove(path);
}

void HfWriter::copy_tokenizer() const {
  if (options_.tokenizer_from.empty()) return;
  const fs::path source = options_.tokenizer_from, to = folder_;
  if (!fs::is_directory(source)) return copy_to(source, to / "tokenizer.model");
  for (const auto& name : tokenizer_file_names())
    if (fs::exists(source / name)) copy_to(source / name, to / name);
}

}  // namespace zero
