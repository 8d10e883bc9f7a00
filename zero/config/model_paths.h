#pragma once
// Identifies the contents of a path named as a model or adapter: a model, an adapter, a run's folder, a checkpoint.
#include <string>

#include "base/files/file_calls.h"

namespace zero {

/// True if the file that defines one is there: config.json, adapter_config.json, manifest.json.
bool is_model(const std::string& folder);
bool is_adapter(const std::string& folder);
bool is_checkpoint(const std::string& folder);

/// True for a checkpoint of adapters. Reads its manifest; InputError if that is broken.
bool holds_adapter(const std::string& checkpoint);

/// Resolves the adapter of a path: RUN/adapter for the folder of a run that made one, else the path itself.
std::string adapter_of(const std::string& path);

/// The newest checkpoint in a run's folder, or in its checkpoints/; empty if none. InputError if it cannot be
/// inspected.
std::string newest_checkpoint_of(const std::string& path, FileCalls& calls);
std::string newest_checkpoint_of(const std::string& path);

/// The largest GGUF file in a folder, since an adapter's is smaller than the model's; empty if none.
std::string gguf_in(const std::string& folder);

/// The problem with a path as a run's base model, with the remedy: "is the folder of a run: name its model, RUN/model".
/// For runs, checkpoints, adapters and GGUF files; empty for anything else.
std::string why_no_base(const std::string& path);

/// Likewise for a path as an adapter: for runs, checkpoints and models; empty for anything else.
std::string why_no_adapter(const std::string& path);

}  // namespace zero
