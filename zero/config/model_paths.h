#pragma once
// What a path holds that a user names as a model or an adapter: a model, an adapter, a run's folder, a checkpoint.
#include <string>

#include "base/files/file_calls.h"

namespace zero {

/// By the file that makes one: config.json, adapter_config.json, manifest.json.
bool is_model(const std::string& folder);
bool is_adapter(const std::string& folder);
bool is_checkpoint(const std::string& folder);

/// Whether a checkpoint is one of adapters. Reads its manifest; InputError when that is broken.
bool holds_adapter(const std::string& checkpoint);

/// The adapter that a path stands for: RUN/adapter where it is the folder of a run that made one, else the path itself.
std::string adapter_of(const std::string& path);

/// The newest checkpoint in a run's folder, or in its checkpoints/; empty where there is none. InputError when it cannot
/// be looked at.
std::string newest_checkpoint_of(const std::string& path, FileCalls& calls);
std::string newest_checkpoint_of(const std::string& path);

/// The largest GGUF file in a folder, which is the model rather than an adapter beside it; empty where there is none.
std::string gguf_in(const std::string& folder);

/// What is wrong with a path as the model that a run begins with, and the remedy: "is the folder of a run: name its
/// model, RUN/model". Of runs, checkpoints, adapters and GGUF files; empty for anything else.
std::string why_no_base(const std::string& path);

/// The same of a path as an adapter: of runs, checkpoints and models; empty for anything else.
std::string why_no_adapter(const std::string& path);

}  // namespace zero
