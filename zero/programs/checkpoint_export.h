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
#include "zero/config/source_files.h"

namespace zero {

/// A checkpoint may come from anybody. The files beside it that its configuration names are read only where their content
/// is the one that it has recorded, so that nobody's files go into an export by being named.
class CheckpointExport {
 public:
  /// `base` and, of adapters, `tokenizer` are what the user names in the place of what the checkpoint names; empty: that.
  /// InputError for a folder that does not verify.
  explicit CheckpointExport(const std::string& folder, const std::string& base = "", const std::string& tokenizer = "");

  const ModelConfig& model() const { return model_; }
  /// The run's training.precision.
  const std::string& precision() const { return config_.training.precision; }
  /// What is read beside the checkpoint: base, tokenizer, adapter. Paths are those that the run saw.
  std::vector<ReadPath> reads() const;
  /// Of a model: its weights.
  std::shared_ptr<WeightSource> weights() const;
  /// Of a model: as the run would have written it, which require_recorded() may refuse. Paths are those that the run saw.
  HfWriteOptions options() const;
  /// InputError for a file of which these options are made, and whose content the checkpoint has not recorded. Those of
  /// `named`, places that the user named, may be any.
  void require_recorded(const HfWriteOptions& options, std::vector<std::string> named) const;
  /// Of an adapter: the same of all that write_adapter() reads, the base's weights where they are read among it.
  void check_adapter() const;
  /// Of an adapter that was checked: writes it as the run would have.
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
