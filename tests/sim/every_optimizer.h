#pragma once
// The optimizers that tests iterate over, with settings that exercise all of their features.
#include <vector>

#include "tests/sim/training_run.h"
#include "zero/optim/optimizer_table.h"

namespace zero::testing {

/// One of each optimizer, then two with groups. With groups, tensors of one flat vector have several optimizers and
/// rates of their own.
inline std::vector<OptimizerOptions> every_optimizer() {
  std::vector<OptimizerOptions> all;
  for (const OptimizerRow& row : optimizer_table()) {
    all.push_back(row.defaults);
    all.back().lr = row.name == "prodigy" || row.name == "sgd" ? 1 : 0.01;
    all.back().lr_adamw = 0.003;
    all.back().d0 = 1e-3;
    all.back().d_coef = 100;  // the distance grows within a few steps
    all.back().use_bias_correction = true;
  }
  OptimizerOptions mixed = optimizer_row("muon").defaults;
  mixed.lr = 0.01;
  mixed.lr_adamw = 0.003;
  mixed.groups = {{{"*.v_proj.weight"}, "adafactor", {}, 0.0},
                  {{"*.mlp.up_proj.weight", "*embed*"}, "lion", 0.002, {}},
                  {{"*norm*"}, "sgd", {}, 0.05}};
  all.push_back(mixed);
  OptimizerOptions rates;
  rates.lr = 0.01;
  rates.groups = {{{"*.q_proj.weight"}, {}, 0.05, {}}, {{"*"}, {}, {}, 0.2}};
  all.push_back(rates);
  return all;
}

/// A model with tensors for that optimizer. 8-bit states get tensors of 4096 elements, and some of these end in the
/// middle of a block.
inline ModelConfig config_for(const OptimizerOptions& options, bool tied = false) {
  ModelConfig config = small_config(tied);
  if (options.name != "adamw8bit") return config;
  config.hidden_size = 64;
  config.intermediate_size = 71;
  config.num_attention_heads = 4;
  config.head_dim = 16;
  return config;
}

inline std::string name_of(const OptimizerOptions& options) {
  return options.groups.empty() ? options.name : options.name + "_with_groups";
}

/// Largest allowed distance of equivalent fp64 runs. Muon's iteration amplifies rounding.
inline double rounding_of(const OptimizerOptions& options) { return options.name == "muon" ? 1e-10 : 1e-12; }

}  // namespace zero::testing
