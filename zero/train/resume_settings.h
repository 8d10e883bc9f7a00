#pragma once
// ResumeSettings: the settings that a run's results depend on besides its states, as text by key. A resumed run must
// agree with its checkpoint in them. It may differ in everything else: ranks, stage, places of states, micro-batches,
// precision, length, records.
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
///   effect, and the base of adapters;
/// - of an adapter that training began from, the values in its adapter_config.json, and its file if that holds frozen
///   tensors besides the adapter's pairs.
///
/// Reads those files to their ends, on `cores`.
Settings resume_settings(const Config& config, const BatchArithmetic& batch, const ModelConfig& model,
                         const CoreSet& cores = {});

/// Throws InputError for unknown keys, with the nearest known one, and for keys of the model's shape, which cannot
/// change.
void check_accepted(const std::vector<std::string>& accepted);

/// Throws InputError with every key that differs between `now` and `then` and is not in `accepted`, both values and the
/// remedy. If the optimizer differs, it reports the name and leaves out that optimizer's defaults. `checkpoint` names
/// the source of `then`.
void require_same_settings(const Config& config, const Settings& now, const Settings& then,
                           const std::vector<std::string>& accepted, const std::string& checkpoint);

/// Returns the keys of `accepted` whose values changed, for people: "optimizer.lr 1.0 -> 0.5".
std::string accepted_changes(const Config& config, const Settings& now, const Settings& then,
                             const std::vector<std::string>& accepted);

/// Returns the other keys whose values changed, for people: "zero.stage 3 -> 1, training.steps 100 -> 200"; empty if
/// none has.
std::string other_changes(const Config& now, const Config& then);

/// Returns changes of the machine, for people: "ranks 2 -> 4, threads of a rank 1 -> 2, processor A -> B". It leaves
/// out facts that an earlier version did not record.
std::string place_changes(const RunDescription& now, const RunDescription& then);

/// Returns "4351213 bytes, SHA-256 by pieces 08d71c2c33e1": the size and the beginning of the fingerprint of the whole
/// content (base/fingerprint.h). For a directory it covers each of its .safetensors files. Before it reads a large
/// file, it logs that.
std::string file_mark(const std::string& path, const CoreSet& cores = {});

}  // namespace zero
