#pragma once
// Writes the trained adapter as PEFT lays it out.
#include <memory>
#include <string>
#include <vector>

#include "models/lora.h"
#include "models/pissa.h"
#include "models/safetensors_writer.h"
#include "models/tokenizer_files.h"
#include "zero/engine.h"

namespace zero {

/// One adapter's files, from its tensors in the order of `tensors`.
class AdapterWriter {
 public:
  /// `pissa`: of an adapter that started by PiSSA; it is written as a plain one of twice the rank over the original base.
  AdapterWriter(const std::string& folder, const std::vector<TensorSpec>& tensors, PissaWeights* pissa);
  void append(const TensorSpec& tensor, const at::Tensor& value);
  /// `base` is named in adapter_config.json; the tokenizer files lie beside it.
  void finish(const LoraOptions& options, const std::string& base, const TokenizerSource& tokenizer);

 private:
  std::string folder_;
  PissaWeights* pissa_;
  std::unique_ptr<SafetensorsWriter> writer_;
};

/// Rank 0 writes `folder`, the others send. Collective; a failure on rank 0 is the same error on
/// all ranks, and a tensor that is missing or empty is one.
void save_adapter(Engine& engine, const LoraOptions& options, PissaWeights* pissa, const std::string& folder, const std::string& base, const TokenizerSource& tokenizer);

}  // namespace zero
