#pragma once
// A LoRA adapter in PEFT's layout: adapter_config.json and adapter_model.safetensors (fp32, metadata {"format": "pt"}).
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "models/formats/safetensors.h"
#include "models/lora/lora.h"

namespace zero {

class PeftDirectory {
 public:
  /// Throws InputError if a file is missing or broken, or needs unsupported features (bias, rank_pattern,
  /// layers_to_transform, another peft_type, DoRA with dropout, ...). Unknown keys must be "off" (null, false, empty).
  /// Also throws for initialisations that change the base's weights (pissa, olora, loftq, corda, lora_ga).
  explicit PeftDirectory(const std::string& folder);

  const std::string& folder() const { return folder_; }
  const LoraOptions& options() const { return options_; }
  const SafetensorsFile& weights() const { return *weights_; }

 private:
  std::string folder_;
  LoraOptions options_;
  std::shared_ptr<SafetensorsFile> weights_;
};

/// Writes adapter_config.json. `base` is the base model's path, for PEFT's base_model_name_or_path.
void write_adapter_config(const std::string& folder, const LoraOptions& options, const std::string& base);

}  // namespace zero
