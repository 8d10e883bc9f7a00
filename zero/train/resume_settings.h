#pragma once
// ResumeSettings: the settings, other than states, that determine a run's results, as text by key. A resumed run must
// agree with its checkpoint in these settings. It may differ in everything else: ranks, stage, places of states,
// micro-batches, precision, length, records.
#include <string>
#include <utility>
#include <vector>

#include "base/core_share.h"
#include "models/model_config.h"
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

/// Part of every file mark, so that marks of another scheme can be recognised.
constexpr const char* mark_scheme = "SHA-256 by pieces ";

/// Returns "4351213 bytes, SHA-256 by pieces 08d71c2c33e1": the size, and the beginning of the fingerprint of the whole
/// content (base/fingerprint.h). For a directory it covers all .safetensors files. Logs a line before it reads a large
/// file.
std::string file_mark(const std::string& path, const CoreSet& cores = {});

}  // namespace zero
