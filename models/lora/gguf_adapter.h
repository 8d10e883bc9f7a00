#pragma once
// An adapter as the GGUF file that llama.cpp opens beside its base, by the rules of its convert_lora_to_gguf.py.
#include <string>

#include "models/lora/peft_directory.h"
#include "models/model.h"

namespace zero {

/// Writes a PEFT directory's adapter, whose tensors belong to the model (MergedWeights::check), in F32: NAME.lora_a [r,
/// in] and NAME.lora_b [out, r] beside llama.cpp's name of each weight. rsLoRA's scale goes into alpha. InputError for
/// what such a file cannot hold: DoRA's magnitudes, modules that were trained whole, a family that llama.cpp does not know.
void write_gguf_adapter(const std::string& path, const PeftDirectory& adapter, const Model& model,
                        const std::string& name);

}  // namespace zero
