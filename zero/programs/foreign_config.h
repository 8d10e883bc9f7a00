#pragma once
// ForeignConfig: translates a configuration of DeepSpeed (JSON) or axolotl (YAML).
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace zero {

/// A number of steps that is a share of the run's, whose steps the file does not name.
struct ForeignShare {
  std::string key;   // "checkpoint.interval"
  double share = 0;  // 0: `times` counts
  double times = 0;  // per epoch
  std::string name;  // the file's key
};

struct ForeignConfig {
  std::string tool;                          // "DeepSpeed" or "axolotl"
  std::string source;                        // the file, for messages
  std::vector<std::string> given;            // of the command line, as for --set; they go before the file
  std::vector<std::string> overrides;        // "section.key=value", as for --set
  std::map<std::string, std::string> names;  // of the keys in `overrides`: the file's key; absent: the tool's default
  std::vector<ForeignShare> shares;
  std::vector<std::pair<std::string, std::string>> open;  // a file's key that is "auto", and the key here
  std::string model, data, output_dir;                    // empty: not named. `data`: files, separated by commas
  bool lora = false;
  bool packs = true;              // the tool packs conversations unless the file says otherwise, or has no say
  std::int64_t steps = 0;         // of the run; 0: the file does not say
  double epochs = 0;              // the same
  std::int64_t rows_of_rank = 0;  // rows of a step for each rank: micro-batch x accumulation; 0: the file does not say
  std::int64_t ranks_of_row = 1;  // ranks that share rows: those of a tensor and a context axis
  // Keys that have no effect here, with the reason, in the file's order.
  std::vector<std::pair<std::string, std::string>> dropped;
};

/// Every key of the file is in `overrides`, in one of the fields, or in `dropped`. `given`: the settings of the command
/// line. Throws InputError for a file that is missing, is neither JSON nor YAML, is larger than 1 MiB, or belongs to
/// neither tool.
ForeignConfig read_foreign_config(const std::string& path, const std::vector<std::string>& given = {});

/// Does the same for a text. Messages call the text `source`. axolotl: throws InputError for preference training and
/// reward models and for unknown adapters, which are not there: the translation would train something else. Both throw
/// InputError for a value that must be a number and is none.
ForeignConfig translate_deepspeed(const std::string& text, const std::string& source,
                                  const std::vector<std::string>& given = {});
ForeignConfig translate_axolotl(const std::string& text, const std::string& source,
                                const std::vector<std::string>& given = {});

}  // namespace zero
