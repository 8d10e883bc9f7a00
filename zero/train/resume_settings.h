#pragma once
// ResumeSettings: what a run's results depend on beside its states, as text by key. A run that resumes must agree
// with its checkpoint in them; in all else (ranks, stage, where states live, micro-batches, precision, length, records)
// it may differ.
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

/// Every key that must agree, with its value as TOML; the model as the fields of its config.json; data files, what of the
/// tokenizer's files shapes an id, the chat template in effect, and the base of adapters by size and content (see
/// file_mark), not by name; of an adapter that training began from what its adapter_config.json says, and the file where
/// it holds frozen tensors beside the adapter's pairs. Reads those files to their ends, on `cores`.
Settings resume_settings(const Config& config, const BatchArithmetic& batch, const ModelConfig& model,
                         const CoreSet& cores = {});

/// Refuses (InputError) keys that are none, naming the nearest, and those of the model's shape, which cannot change.
void check_accepted(const std::vector<std::string>& accepted);

/// Throws InputError with every key in which `now` and `then` differ and which is not in `accepted`, both values and what
/// to do. Of another optimizer its name is told, and what it has by default is not. `checkpoint` names where `then` is
/// from.
void require_same_settings(const Config& config, const Settings& now, const Settings& then,
                           const std::vector<std::string>& accepted, const std::string& checkpoint);

/// Those of `accepted` whose values changed, for people: "optimizer.lr 1.0 -> 0.5".
std::string accepted_changes(const Config& config, const Settings& now, const Settings& then,
                             const std::vector<std::string>& accepted);

/// The other keys whose values changed, for people: "zero.stage 3 -> 1, training.steps 100 -> 200"; empty when none
/// has.
std::string other_changes(const Config& now, const Config& then);

/// What it computes on, for people: "ranks 2 -> 4, threads of a rank 1 -> 2, processor A -> B"; what an earlier version
/// did not write down is not told.
std::string place_changes(const RunDescription& now, const RunDescription& then);

/// "4351213 bytes, SHA-256 by pieces 08d71c2c33e1": size and the beginning of the fingerprint of the whole content
/// (base/fingerprint.h). Of a directory: of each of its .safetensors files. Large files are told of before they are
/// read.
std::string file_mark(const std::string& path, const CoreSet& cores = {});

}  // namespace zero
