#pragma once
// Exports a checkpoint as the model or adapter that its run would have written.
#include <memory>
#include <string>
#include <vector>

#include "models/formats/hf_directory.h"
#include "models/model.h"
#include "models/weight_source.h"
#include "zero/checkpoint/saved_states.h"
#include "zero/config/config.h"
#include "zero/config/read_paths.h"
#include "zero/config/source_files.h"

namespace zero {

/// A checkpoint may come from a stranger. Its configuration may name other files. These are read only if their contents
/// match the checkpoint's records, so a checkpoint cannot leak a file just by naming it.
class CheckpointExport {
 public:
  /// `base` and, for adapters, `tokenizer` replace the paths that the checkpoint names; empty: keep the path. Throws
  /// InputError if the folder fails verification.
  explicit CheckpointExport(const std::string& folder, const std::string& base = "", const std::string& tokenizer = "");

  const ModelConfig& model() const { return model_; }
  /// For an adapter: the model that it was trained on, as the run saw its path or as named; empty for a preset.
  std::string base() const { return seen().model.path.value_or(""); }
  /// The run's training.precision.
  const std::string& precision() const { return config_.training.precision; }
  /// The other inputs: base, tokenizer, adapter. Paths are as the run saw them.
  std::vector<ReadPath> reads() const;
  /// The weights of a model.
  std::shared_ptr<WeightSource> weights() const;
  /// For a model: the run's options, for which require_recorded() may throw. Paths are as the run saw them.
  HfWriteOptions options() const;
  /// Throws InputError if these options need a file that the checkpoint does not record. Files in `named`, which the
  /// user named, are exempt.
  void require_recorded(const HfWriteOptions& options, std::vector<std::string> named) const;
  /// For an adapter: makes the same check for all files that write_adapter() reads, including the base model's weights
  /// if they are read.
  void check_adapter() const;
  /// For an adapter: throws InputError unless the base model's weights are those on which the run began. A base that
  /// the user named is exempt.
  void check_base() const;
  /// Writes the adapter as the run would have written it. Call check_adapter() first.
  void write_adapter(const std::string& folder) const;

 private:
  Config seen() const;
  bool is_pissa() const;
  void require_recorded(const std::vector<SourceFile>& files, const std::vector<std::string>& named) const;

  FileCalls calls_;
  std::shared_ptr<SavedStates> states_;
  Config config_;
  std::string base_, tokenizer_;
  ModelConfig model_;
};

}  // namespace zero
