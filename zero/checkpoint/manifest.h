#pragma once
// Manifest: manifest.json of a checkpoint, its last file to be written: what the run was, where it stood, which states
// lie in which file, and by which marks the files are known.
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

/// Steps without an update, since something in them was not finite (training.on_nonfinite). Steps count from 1.
struct PassedSteps {
  std::vector<std::int64_t> steps;  // ascending; after a rollback also such as are still to come
  std::int64_t in_a_row = 0;        // up to where the run stands
  std::int64_t rollbacks = 0;       // since a checkpoint beyond `failed_at`
  std::int64_t failed_at = 0;       // the last step at which one was called for

  bool operator==(const PassedSteps&) const = default;
};

/// Where a run stands after so many steps.
struct RunPosition {
  std::int64_t steps = 0;   // done; the data of the next step follow from it
  std::int64_t tokens = 0;  // input tokens so far
  std::int64_t trained_tokens = 0;
  double seconds = 0;        // of training so far
  std::int64_t updates = 0;  // of the optimizer: fewer than steps where some were skipped
  std::optional<LossScaleState> loss_scale;
  PassedSteps passed = {};
  std::string unwritten_records = {};  // lines of the run's log of steps that its file had no room for yet
  std::string owed_validation = {};    // the log's line of the last step, which waits for its validation; empty: none

  bool operator==(const RunPosition&) const = default;
};

/// What the run was. The core does not look into it.
struct RunDescription {
  std::vector<std::pair<std::string, std::string>> settings;      // that decide results: key, value
  std::string configuration;                                      // resolved TOML
  std::string directory;                                          // that its relative paths start from
  std::string model_config;                                       // config.json
  std::vector<std::pair<std::string, std::string>> sources = {};  // files of which its result is made: name, SHA-256
  int ranks = 1;
  int stage = 0;
  int threads = 0;             // of each rank; 0: unknown
  std::string processor = {};  // of rank 0; empty: unknown
  std::string id = {};         // the run's own, from its first start on; empty: unknown
};

/// Tensors side by side, by offset, and the arrays that are saved of their elements: "master" and what an optimizer keeps;
/// or statistics, whose tensors are "STATISTIC:TENSOR", of the run "STATISTIC:".
struct SavedGroup {
  std::vector<FlatTensor> tensors;
  std::int64_t numel = 0;
  std::vector<StateSpec> states;
  std::string optimizer = {};  // whose states they are; empty: of none, or of a manifest that did not say it
};

/// One of the models whose states lie in a checkpoint (zero/checkpoint/checkpoint_models.h).
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
  static constexpr int current_version = 2;             // 1 knew AdamW's states alone, and another checksum
  static constexpr std::int64_t most_bytes = 64 << 20;  // of the file
  int version = current_version;

  RunDescription run;
  RunPosition position;
  std::vector<SavedModel> models = {};  // empty: one without name and type, with the position's updates
  std::int64_t chunk_elements = ShardFormat::default_chunk_elements;
  std::vector<SavedGroup> groups;
  std::vector<SavedFile> files;

  /// Of all groups, for a ShardFormat.
  std::vector<std::vector<StateSpec>> states() const;
  /// Of all shard files.
  std::int64_t bytes() const;
};

/// Whether checkpoints hold arrays of the type.
bool is_state_type(at::ScalarType type);

/// The file's text. It begins with a checksum of all the rest. Error where it has more than Manifest::most_bytes.
std::string format_manifest(const Manifest& manifest);

/// DamagedCheckpoint names `path` when a byte differs from what was written, and for contents that contradict each other.
/// InputError for a later version.
Manifest parse_manifest(const std::string& content, const std::string& path);

/// By which checkpoints are told apart: of all that the manifest says, the marks of the files among it.
std::int64_t mark_of(const Manifest& manifest);

/// Reads FOLDER/manifest.json. InputError when it cannot be read. DamagedCheckpoint as of parse_manifest(), and for a file of
/// more than Manifest::most_bytes.
Manifest read_manifest(FileCalls& calls, const std::string& folder);

}  // namespace zero
