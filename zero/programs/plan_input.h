#pragma once
// PlanInput: a plan's model or configuration, as the user names it.
#include <cstdint>
#include <string>
#include <vector>

#include "zero/config/config.h"
#include "zero/plan/plan_machine.h"

namespace zero {

struct PlanInput {
  std::string model;  // a preset, a path to a model, or a configuration
  std::vector<std::string> overrides;
  std::string data;               // for a model
  std::string tokenizer;          // for a preset and texts
  std::int64_t seq_len = 0;       // 0: 2048, or the model's context if it is shorter
  std::int64_t global_batch = 0;  // rows; 0: about 131,072 tokens, at least one row for each rank
  bool keep_batch = false;        // local_batch_size is not searched
};

bool is_preset(const std::string& name);

/// True if the files of `data` hold texts, and neither the model nor `tokenizer` nor an override has a tokenizer.
bool lacks_tokenizer(const std::string& model, const std::vector<std::string>& data, const std::string& tokenizer,
                     const std::vector<std::string>& overrides);

/// Throws InputError that names the option, if the model's context is shorter than `seq_len`.
void check_context(const std::string& option, std::int64_t seq_len, const ModelConfig& model);

/// Reads the configuration, or makes one for a model. Throws InputError if the model is missing or unknown. Also throws
/// InputError if a configuration comes with options that only a model takes.
Config config_of(const PlanInput& input, const MachineRequest& machine);

}  // namespace zero
