#pragma once
// NewRun: makes a configuration from a few answers, with the values that docs/where-to-begin.md recommends.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "zero/config/config.h"
#include "zero/plan/plan_machine.h"

namespace zero {

struct NewRun {
  std::string model;      // a preset or a path
  std::string data;       // a file, or several separated by commas
  std::string tokenizer;  // empty: the model directory's
  std::string method;     // full, lora or qlora; empty: full for a preset, otherwise lora
  std::string output_dir;
  std::int64_t steps = 0;                     // 0: 1,000 for a preset, otherwise two epochs
  std::int64_t seq_len = 0;                   // 0: 1,024, on GPUs 2,048, at most the model's context
  std::int64_t global_batch = 0;              // 0: 32 rows, for a preset on GPUs about 524,288 tokens
  std::vector<std::string> overrides;         // --set
  std::map<std::string, std::string> places;  // of overrides that do not come from the command line, for messages
  bool packs = true;                          // conversations, if `overrides` do not say

  /// True if an override is of a key that begins with `prefix`.
  bool sets(const std::string& prefix) const;
};

/// Throws InputError for a path that is not a model, and for answers that contradict each other.
void check_model(const std::string& model);
/// Throws InputError for a file that is missing, or of a kind that [data] does not support.
void check_data(const std::string& data);
/// The files of --data, which are separated by commas.
std::vector<std::string> files_of(const std::string& data);
/// True if the data are texts and neither the model nor an answer has a tokenizer.
bool needs_tokenizer(const NewRun& run);
/// Throws InputError for a path without a tokenizer.
void check_tokenizer(const std::string& path);
/// Throws InputError that lists the machines.
void check_machine(const std::string& machine);

/// True if the first file of data has pairs or judged answers, or if a setting names a method of preferences.
bool takes_preferences(const NewRun& run);

/// A preset with fewer ids than the tokenizer gets as many.
Config config_of(const NewRun& run, const MachineRequest& machine);

/// Keys that zero_config writes even if they have their defaults.
std::vector<std::string> keys_to_show(const Config& config);

}  // namespace zero
