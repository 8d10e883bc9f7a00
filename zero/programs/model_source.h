#pragma once
// ModelSource: a model as users of a trained one name it: a Hugging Face directory, a GGUF file, a run's folder or
// a checkpoint of zero_train, perhaps with an adapter over it.
#include <memory>
#include <string>

#include "models/formats/hf_directory.h"
#include "models/formats/unused_tensors.h"
#include "models/weight_source.h"

namespace zero {

struct ModelSource {
  std::string name;    // for people: of the folder or the run, without "model" and the like
  std::string folder;  // that was opened
  ModelConfig config;
  std::shared_ptr<WeightSource> weights;  // with the adapter merged in
  HfWriteOptions options;                 // how it would be written: type as stored, tokenizer, base
  std::string precision;                  // fp32 | bf16 | fp16: that of its run or its adapter's, else as stored
};

/// Of --allow-unused, in --help.
inline constexpr const char* allow_unused_help =
    "leave out tensors of the model's file that belong to the model and that its configuration does not name";

struct ModelPlace {
  std::string model;
  std::string adapter = {};    // a PEFT directory, or the folder of a run that made one; empty: none
  std::string tokenizer = {};  // tokenizer.model or a folder with one, before any other; empty: none
  UnusedTensors unused = UnusedTensors::refuse;
  std::string base = {};  // of a checkpoint: its base model's directory; empty: the one that it names
};

/// The place with run folders replaced by what they hold: RUN by RUN/model, or by the newest of RUN/checkpoints where
/// no model is there yet; RUN/checkpoints by its newest; an adapter's RUN by RUN/adapter. A run that made an adapter, in
/// the model's place and without another adapter, stands for the model that it was trained on with that adapter; the
/// log says which. It must be a run of the caller's own, since its config.toml names the model. InputError, with the
/// command that helps, where that model is not found, for a run of somebody else's, for a checkpoint of adapters as an
/// adapter, and for an adapter in the model's place.
ModelPlace resolve(const ModelPlace& place);

inline constexpr const char* base_help =
    "model directory in the place of the base model that a checkpoint names, where that has moved or changed";

/// InputError where a resolved place that is no checkpoint has a base.
void require_base_of_checkpoint(const ModelPlace& place);

/// For people: "run1" of out/run1/model, out/run1/adapter, out/run1/checkpoints/step-00000050 and out/run1 alike.
std::string name_of_place(const std::string& path);

/// Opens a resolved place. InputError for what is missing, broken or does not belong together. Reads no weights.
ModelSource open_model(const ModelPlace& place);

}  // namespace zero
