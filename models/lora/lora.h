#pragma once
// LoRA on a decoder, with PEFT's names, rules and arithmetic: the adapted modules and the trained parameters.
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "models/model.h"

namespace zero {

enum class LoraInit : std::uint8_t { kaiming, gaussian, pissa };

struct LoraOptions {
  std::int64_t r = 8;
  double alpha = 8;
  double dropout = 0;
  std::vector<std::string> target_modules = {"q_proj", "v_proj"};  // or {"all-linear"}: every projection of the blocks
  // Name endings of modules that are trained in full and saved with the adapter, matched as PEFT does. "norm" includes
  // all norms of the blocks, "model.norm" only the last norm. Projections of blocks are excluded.
  std::vector<std::string> modules_to_save;
  bool ensure_weight_tying = false;  // a saved embedding also serves as the head
  bool use_rslora = false;
  bool use_dora = false;
  LoraInit init = LoraInit::kaiming;
  double loraplus_lr_ratio = 1;  // learning rate of the B matrices over that of the A matrices
  std::uint64_t seed = 0;        // of dropout
  bool fan_in_fan_out = false;   // the adapted weights are stored [in, out]

  /// The factor that multiplies B A: alpha / r, or alpha / sqrt(r) with rsLoRA.
  double scale() const;
};

/// Freezes the model and adds adapters to the blocks' projections that target_modules name (by a module's whole name,
/// or its end after a dot). Call it before any parameter has memory. If a name matches nothing, throws InputError with
/// the key ("lora.target_modules: ") and the existing names. Returns the options resolved for the model: target_modules
/// expanded, fan_in_fan_out and ensure_weight_tying set.
LoraOptions add_lora(Model& model, const LoraOptions& options);

/// The options in an adapter's folder, resolved for `model`: a tied head is saved under its embedding's name. Throws
/// InputError if the adapter trains the embedding separately but the model ties the head to it.
LoraOptions stored_options(const LoraOptions& stored, const ModelConfig& model, const std::string& folder);

/// target_modules as a sorted list of plain module names ("q_proj"). "all-linear" expands to the family's modules.
std::vector<std::string> expand_targets(const std::vector<std::string>& targets,
                                        const std::string& model_type = "llama");

/// The whole names of the projections that target_modules match in a model without adapters. `unmatched`, if given,
/// receives the targets that match none.
std::set<std::string> targeted_projections(const Model& model, const std::vector<std::string>& targets,
                                           std::set<std::string>* unmatched = nullptr);

/// The prefix of module names in an adapter file.
inline constexpr const char* peft_prefix = "base_model.model.";

/// "trainable params: 1,126,400 || all params: 1,101,174,784 || trainable%: 0.1023", as PEFT prints it.
std::string trainable_line(const Model& model);

}  // namespace zero
