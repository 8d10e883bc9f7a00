#pragma once
// ModelSource: a model as users name it. It is a Hugging Face directory, a GGUF file, a run's folder or a checkpoint of
// zero_train, each with or without an adapter.
#include <memory>
#include <optional>
#include <string>

#include "models/formats/hf_directory.h"
#include "models/formats/unused_tensors.h"
#include "models/generate/stored_weights.h"
#include "models/lora/lora.h"
#include "models/weight_source.h"
#include "zero/config/config.h"

namespace zero {

/// A GGUF file whose matrices can be held as stored, with its adapter. The adapter stays apart, as in training, if it
/// can. Then `lora` has its options. Otherwise it is merged into the matrices that it changes.
struct StoredSource {
  std::shared_ptr<WeightSource> weights;
  StoredTypeOf type_of;
  std::optional<LoraOptions> lora = {};
};

struct ModelSource {
  std::string name;    // human-readable name of the folder or the run, without "model" and the like
  std::string folder;  // the opened folder
  ModelConfig config;
  std::shared_ptr<WeightSource> weights;  // with the adapter merged
  std::optional<StoredSource> stored;     // for generation from a GGUF file
  HfWriteOptions options;                 // for writing: type as stored, tokenizer, base
  std::string precision;                  // fp32 | bf16 | fp16: the run's or the adapter's, otherwise as stored
};

/// The help text of --allow-unused.
inline constexpr const char* allow_unused_help =
    "ignore tensors in the model's file that its config.json does not account for";

struct ModelPlace {
  std::string model;
  std::string adapter = {};    // a PEFT directory, or the folder of a run that made an adapter; empty: none
  std::string tokenizer = {};  // tokenizer.model or a folder with one; overrides all others; empty: none
  UnusedTensors unused = UnusedTensors::refuse;
  std::string base = {};  // the base model's directory, for a checkpoint; empty: the one that the checkpoint names
};

/// Replaces run folders by their contents:
/// - RUN by RUN/model, or by the newest checkpoint in RUN/checkpoints if there is no model yet;
/// - RUN/checkpoints by the newest checkpoint in it;
/// - RUN given as an adapter by RUN/adapter.
///
/// A checkpoint of adapters stands for the model that they were trained on, with them.
///
/// The model may be a run that made an adapter. If no other adapter is given, the run stands for its base model plus
/// that adapter, and the log names both. The user must own that run's folder, since its config.toml names the base
/// model.
///
/// If the base model is missing or another user owns the run, throws InputError that names a command to use instead.
/// Also throws for an adapter given as a model, and for a checkpoint of adapters given as an adapter.
ModelPlace resolve(const ModelPlace& place);

/// Resolves the place of an adapter alone, which `option` names in messages.
std::string resolve_adapter(const std::string& given, const std::string& option);

inline constexpr const char* base_help = "the base model, if the one that the checkpoint names has moved or changed";

/// Throws InputError if a resolved place has a base but is not a checkpoint.
void require_base_of_checkpoint(const ModelPlace& place);

/// Returns a readable name: "run1" for out/run1/model, out/run1/adapter, out/run1/checkpoints/step-00000050 and
/// out/run1.
std::string name_of_place(const std::string& path);

/// The configuration of the run whose folder, checkpoint, model or adapter a place is. None for another place, or if
/// the caller does not own that run's config.toml.
std::optional<Config> config_of_place(const std::string& path);

/// Opens a resolved place. Throws InputError if anything is missing, broken or inconsistent. Reads no weights.
ModelSource open_model(const ModelPlace& place);

}  // namespace zero
