#pragma once
// Writes an adapter as a GGUF file that llama.cpp loads together with the base, following its convert_lora_to_gguf.py.
#include <string>

#include "models/lora/adapter_contents.h"

namespace zero {

/// Writes an adapter of the model in F32: NAME.lora_a [r, in] and NAME.lora_b [out, r], where NAME is llama.cpp's name
/// of the weight. Alpha holds rsLoRA's scale. Throws InputError for DoRA's magnitudes and for whole tensors, which such
/// a file cannot hold. Also throws InputError for a family that llama.cpp does not know.
void write_gguf_adapter(const std::string& path, const AdapterContents& adapter, const Model& model,
                        const std::string& name);

}  // namespace zero
