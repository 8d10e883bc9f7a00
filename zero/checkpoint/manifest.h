#pragma once
// Manifest: manifest.json, written last into a checkpoint. It holds the run's description and position, the files of
// the states, and the size and checksum of each file (FileMark).
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/files/file_calls.h"
#include "zero/checkpoint/shard_format.h"
#include "zero/checkpoint/shard_writer.h"
#include "zero/core/buffers/flat_layout.h"
#include "zero/optim/loss_scale.h"

namespace zero {

/// Steps without an update because a value was not finite (training.on_nonfinite). Steps count from 1.
struct PassedSteps {
  std::vector<std::int64_t> steps;  // ascending; after a rollback they include future steps
  std::int64_t in_a_row = 0;        // consecutive ones up to the run's position
  std::int64_t rollbacks = 0;       // since the last checkpoint beyond `failed_at`
  std::int64_t failed_at = 0;       // the last step that required a rollback

  bool operator==(const PassedSteps&) const = default;
};

/// The position of a run after some number of steps.
struct RunPosition {
  std::int64_t steps = 0;   // steps done; they determine the next step's data
  std::int64_t tokens = 0;  // input tokens so far
  std::int64_t trained_tokens = 0;
  double seconds = 0;        // of training so far
  std::int64_t updates = 0;  // updates of the optimizer; fewer than `steps` if some were skipped
  std::optional<LossScaleState> loss_scale;
  PassedSteps passed = {};
  std::string unwritten_records = {};  // log lines of steps that did not yet fit into the log file
  std::string owed_validation = {};    // log line of the last step, pending its validation; empty: none

  bool operator==(const RunPosition&) const = default;
};

/// A description of the run, which zero/core does not interpret.
struct RunDescription {
  std::vector<std::pair<std::string, std::string>> settings;      // settings that affect results: key, value
  std::string configuration;                                      // resolved TOML
  std::string directory;                                          // base of its relative paths
  std::string model_config;                                       // config.json
  std::vector<std::pair<std::string, std::string>> sources = {};  // files that determine the result: name, SHA-256
  int ranks = 1;
  int stage = 0;
  int threads = 0;             // of each rank; 0: unknown
  std::string processor = {};  // of rank 0; empty: unknown
  std::string id = {};         // unique to the run since its first start; empty: unknown
};

/// Consecutive tensors, by offset, and their saved arrays: "master" and the optimizer's states. Each statistic is a
/// group of its own, with tensors named "STATISTIC:TENSOR", or "STATISTIC:" for the whole run.
struct SavedGroup {
  std::vector<FlatTensor> tensors;
  std::int64_t numel = 0;
  std::vector<StateSpec> states;
  std::string optimizer = {};  // that wrote the states; empty: none, or a manifest that did not record it
};

/// One of the models in a checkpoint (zero/checkpoint/checkpoint_models.h).
struct SavedModel {
  std::string name, type;
  std::int64_t updates = 0;  // of its optimizer

  bool operator==(const SavedModel&) const = default;
};

struct SavedFile {
  std::string name;
  std::vector<ShardSection> sections;
  FileMark mark;
};

struct Manifest {
  /// Version 1 had only AdamW's states, and a different checksum. Version 3 adds slices of tensors; a checkpoint
  /// without slices is still written as version 2.
  static constexpr int current_version = 3;
  static constexpr std::int64_t most_bytes = 64 << 20;  // of the file
  int version = current_version;                        // as it was read

  RunDescription run;
  RunPosition position;
  std::vector<SavedModel> models = {};  // empty: one model without name and type; its updates are the position's
  std::int64_t chunk_elements = ShardFormat::default_chunk_elements;
  std::vector<SavedGroup> groups;
  std::vector<SavedFile> files;

  /// The states of all groups, for a ShardFormat.
  std::vector<std::vector<StateSpec>> states() const;
  /// The sum over all shard files.
  std::int64_t bytes() const;
};

/// True if checkpoints can hold arrays of the type.
bool is_state_type(at::ScalarType type);

/// Returns the file's text, which begins with a checksum of the rest. Throws Error if the text is longer than
/// Manifest::most_bytes.
std::string format_manifest(const Manifest& manifest);

/// Throws DamagedCheckpoint, which names `path`, if a byte differs from the written one or the contents contradict each
/// other. Throws InputError for a later version.
Manifest parse_manifest(const std::string& content, const std::string& path);

/// Returns a hash of the whole manifest, including the file marks. Different checkpoints have different hashes.
std::int64_t mark_of(const Manifest& manifest);

/// Reads FOLDER/manifest.json. Throws InputError if it cannot be read, and DamagedCheckpoint as parse_manifest() does,
/// or if the file is longer than Manifest::most_bytes.
Manifest read_manifest(FileCalls& calls, const std::string& folder);

}  // namespace zero
