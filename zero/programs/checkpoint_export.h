#pragma once
// A checkpoint as the model or adapter that its run would have written.
#include <memory>
#include <string>
#include <vector>

#include "models/formats/hf_directory.h"
#include "models/model.h"
#include "models/weight_source.h"
#include "zero/checkpoint/saved_states.h"
#include "zero/config/config.h"
#include "zero/config/read_paths.h"

namespace zero {

class CheckpointExport {
 public:
  /// InputError for a folder that does not verify.
  explicit CheckpointExport(const std::string& folder);

  const ModelConfig& model() const { return model_; }
  /// What is read beside the checkpoint: base, tokenizer, adapter. Paths are those that the run saw.
  std::vector<ReadPath> reads() const;
  /// Of a model: its weights.
  std::shared_ptr<WeightSource> weights() const;
  /// Of a model: as the run would have written it. Paths are those that the run saw.
  HfWriteOptions options() const;
  /// Of an adapter: writes it as the run would have.
  void write_adapter(const std::string& folder) const;

 private:
  FileCalls calls_;
  std::shared_ptr<SavedStates> states_;
  Config config_;
  ModelConfig model_;
};

}  // namespace zero
