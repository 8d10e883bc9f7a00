#pragma once
// ResumeSettings: the settings, other than states, that determine a run's results, as text by key. A resumed run must
// agree with its checkpoint in these settings. It may differ in everything else: ranks, stage, places of states,
// micro-batches, precision, length, records.
#include <string>
#include <utility>
#include <vector>

#include "base/core_share.h"
#include "models/model_config.h"
#include "zero/checkpoint/manifest.h"
#include "zero/config/batch_arithmetic.h"
#include "zero/config/config.h"

namespace zero {

using Settings = std::vector<std::pair<std::string, std::string>>;

/// Returns every key that must agree, with its value as TOML:
///
/// - the model, as the fields of its config.json;
/// - by size and content (file_mark()), not by name: data files, tokenizer files that shape an id, the chat template in
///   effect, and the base model of adapters;
/// - of the adapter with which training began, the values in its adapter_config.json, and its file if that holds frozen
///   tensors in addition to the adapter's pairs.
///
/// Reads these files completely, on `cores`.
Settings resume_settings(const Config& config, const BatchArithmetic& batch, const ModelConfig& model,
                         const CoreSet& cores = {});

/// Returns a mark of the weights with which a run begins, by content: the base or the preset and its seed, the adapter
/// that is trained further, and the base's quantization. `settings`: of resume_settings(). Reads these files
/// completely, unless the settings have their marks.
std::string start_mark(const Config& config, const ModelConfig& model, const Settings& settings,
                       const CoreSet& cores = {});

/// Throws InputError for unknown keys, and names the nearest known key. Also throws for keys that decide the shapes of
/// the model or of its adapter, which cannot change.
void check_accepted(const std::vector<std::string>& accepted);

/// Throws InputError if a key differs between `now` and `then` and is not in `accepted`. The message lists every such
/// key with both values, and a remedy. If the optimizer differs, the message has its name but not its defaults.
/// `checkpoint` names the source of `then`.
void require_same_settings(const Config& config, const Settings& now, const Settings& then,
                           const std::vector<std::string>& accepted, const std::string& checkpoint);

/// Returns the keys of `accepted` whose values changed, for the log: "optimizer.lr 1.0 -> 0.5".
std::string accepted_changes(const Config& config, const Settings& now, const Settings& then,
                             const std::vector<std::string>& accepted);

/// Returns the other keys whose values changed, for the log: "zero.stage 3 -> 1, training.steps 100 -> 200"; empty if
/// there are none.
std::string other_changes(const Config& now, const Config& then);

/// Returns changes of the machine, for the log: "ranks 2 -> 4, threads of a rank 1 -> 2, processor A -> B". Omits facts
/// that an earlier version did not record.
std::string place_changes(const RunDescription& now, const RunDescription& then);

/// Returns "4351213 bytes, SHA-256 by pieces 08d71c2c33e1": the size, and the beginning of the fingerprint of the whole
/// content (base/fingerprint.h). For a directory it covers all .safetensors files. Logs a line before it reads a large
/// file.
std::string file_mark(const std::string& path, const CoreSet& cores = {});

}  // namespace zero
