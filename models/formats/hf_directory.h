#pragma once
// A model in Hugging Face's layout: config.json, model.safetensors or shards with an index, generation_config.json,
// tokenizer files. HfDirectory reads one, HfWriter writes one.
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "models/formats/safetensors.h"
#include "models/formats/safetensors_writer.h"
#include "models/formats/tokenizer_files.h"
#include "models/model_config.h"
#include "models/tensor_spec.h"

namespace zero {

/// True if a path names the config.json of a model, under any name: a file that ends in .json.
bool is_config_file(const std::string& path);

/// Reads only the config.json, given by its path or its directory. Throws InputError if the folder has none, or if the
/// file is invalid.
ModelConfig read_model_config(const std::string& path);

class HfDirectory {
 public:
  /// Reads config.json and every safetensors header. Throws InputError if a file is missing or invalid, or if index and
  /// shards disagree. Also throws if a shard's name has more than one path component, and when require_own_files()
  /// does.
  explicit HfDirectory(const std::string& folder);

  /// True if the folder has a safetensors file or an index of several.
  static bool holds_weights(const std::string& folder);

  const std::string& folder() const { return folder_; }
  const ModelConfig& config() const { return config_; }
  std::vector<std::string> names() const;  // of all stored tensors, sorted
  /// Returns null if no tensor has this name.
  const StoredTensor* find(const std::string& name) const;
  /// Reads like SafetensorsFile::read().
  void read(const std::string& name, std::int64_t begin, std::int64_t count, const at::Tensor& out) const;

 private:
  void open_shards(const std::string& index_path);
  std::string folder_;
  ModelConfig config_;
  std::vector<std::unique_ptr<SafetensorsFile>> files_;
  std::unordered_map<std::string, const SafetensorsFile*> where_;
};

struct HfWriteOptions {
  at::ScalarType type = at::kFloat;  // of every tensor in the files
  std::int64_t max_shard_bytes = 5'000'000'000;
  TokenizerSource tokenizer = {};  // also written; its end-of-answer token becomes one of the model's end tokens
  // the model directory whose generation_config.json and extra fields of config.json are kept; may be empty
  std::string base = {};
};

/// Writes a directory front to back. Readers see the new model only once finish() has renamed the last file.
class HfWriter {
 public:
  /// Creates the folder if it is missing. `tensors` must be those that config.json implies: no lm_head if it is tied.
  HfWriter(const std::string& folder, const ModelConfig& config, const std::vector<TensorSpec>& tensors,
           HfWriteOptions options = {});

  /// Appends elements in the order of `tensors`, flattened, in chunks of any size that do not cross the end of a
  /// tensor.
  void append(const at::Tensor& chunk);
  /// Writes the index and the JSON files, and removes files of an earlier model. Throws InternalError if elements are
  /// missing.
  void finish();

 private:
  struct Shard {
    std::string name;
    std::vector<SafetensorsSpec> tensors;
    std::int64_t elements = 0;
    std::int64_t bytes = 0;
  };
  void plan(const std::vector<TensorSpec>& tensors);
  void finish_shard();
  void write_index() const;
  void write_config() const;
  void remove_stale() const;

  std::string folder_;
  ModelConfig config_;
  HfWriteOptions options_;
  std::vector<Shard> shards_;
  std::size_t shard_ = 0;     // the shard being written
  std::int64_t written_ = 0;  // elements written to this shard
  std::unique_ptr<SafetensorsWriter> writer_;
  // complete shards, which are renamed together at the end
  std::vector<std::unique_ptr<SafetensorsWriter>> whole_;
};

}  // namespace zero
