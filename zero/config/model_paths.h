#pragma once
// Identifies the contents of a path named as a model or adapter: a model, an adapter, a run's folder, a checkpoint.
#include <string>

#include "base/files/file_calls.h"

namespace zero {

/// Each returns true if the defining file exists: config.json, adapter_config.json or manifest.json.
bool is_model(const std::string& folder);
bool is_adapter(const std::string& folder);
bool is_checkpoint(const std::string& folder);

/// Returns true for a checkpoint of adapters. Reads its manifest; throws InputError if the manifest is broken.
bool holds_adapter(const std::string& checkpoint);

/// Resolves a path to an adapter: returns RUN/adapter for the folder of a run that made an adapter, otherwise the path
/// itself.
std::string adapter_of(const std::string& path);

/// Returns the newest checkpoint in a run's folder, or in the folder's checkpoints/; empty if there is none. Throws
/// InputError if the folder cannot be inspected.
std::string newest_checkpoint_of(const std::string& path, FileCalls& calls);
std::string newest_checkpoint_of(const std::string& path);

/// Returns the largest GGUF file in a folder, since an adapter's file is smaller than the model's; empty if there is
/// none.
std::string gguf_in(const std::string& folder);

/// Ends a message about a path that is not there: "; if it is a model of Hugging Face's hub, fetch it first: ...".
/// Empty for a path that cannot be a name such as "TinyLlama/TinyLlama-1.1B".
std::string hub_hint(const std::string& path);

/// Explains why a path cannot be a run's base model, with a remedy: "is the folder of a run: name its model,
/// RUN/model". Covers runs, checkpoints, adapters and GGUF files; empty for anything else.
std::string why_no_base(const std::string& path);

/// Explains why a path cannot be an adapter. Covers runs, checkpoints and models; empty for anything else.
std::string why_no_adapter(const std::string& path);

}  // namespace zero
