#pragma once
// AdapterWriter: writes a trained adapter in PEFT's layout: adapter_config.json, adapter_model.safetensors, tokenizer
// files.
#include <memory>
#include <string>
#include <vector>

#include "models/families/family.h"
#include "models/formats/safetensors_writer.h"
#include "models/formats/tokenizer_files.h"
#include "models/lora/adapter_contents.h"
#include "models/lora/lora.h"
#include "models/lora/pissa.h"

namespace zero {

/// Writes one adapter's files, from its tensors in the order of `tensors`.
class AdapterWriter {
 public:
  /// `family` is the model's family, and `options` the result of add_lora(). `pissa` is null unless the adapter started
  /// with PiSSA; it is then written as a plain adapter of twice the rank over the original base. `start` is the adapter
  /// that training began from, or null; its beside() tensors are written again. All arguments must outlive this object.
  AdapterWriter(const std::string& folder, const std::vector<TensorSpec>& tensors, const Family& family,
                const LoraOptions& options, PissaWeights* pissa, const AdapterContents* start);
  void append(const TensorSpec& tensor, const at::Tensor& value);
  /// Writes adapter_config.json, which names `base`, and the tokenizer files into the same folder.
  void finish(const std::string& base, const TokenizerSource& tokenizer);

 private:
  bool is_head_too(const TensorSpec& tensor) const;

  std::string folder_;
  const DecoderNames& names_;
  LoraOptions options_;
  PissaWeights* pissa_;
  const AdapterContents* start_;
  std::unique_ptr<SafetensorsWriter> writer_;
};

}  // namespace zero
