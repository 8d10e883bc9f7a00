#include "zero/optim/optimizer_table.h"

#include <algorithm>

#include "base/error.h"

namespace zero {

// Defined in the files of rules/.
OptimizerRow adamw_row(), sgd_row(), lion_row(), adafactor_row(), prodigy_row(), muon_row(), adamw8bit_row();

const std::vector<OptimizerRow>& optimizer_table() {
  static const std::vector<OptimizerRow> rows = [] {
    std::vector<OptimizerRow> all{adamw_row(),   sgd_row(),  lion_row(),     adafactor_row(),
                                  prodigy_row(), muon_row(), adamw8bit_row()};
    for (const OptimizerRow& row : all)
      for (const std::string& key : row.settings) rule_setting(key);  // throws for a key without a line
    return all;
  }();
  return rows;
}

bool takes(const OptimizerRow& row, const RuleSetting& setting) {
  return setting.takers == Takers::every_rule || std::ranges::find(row.settings, setting.key) != row.settings.end();
}

std::vector<std::string> optimizer_names() {
  std::vector<std::string> names;
  for (const OptimizerRow& row : optimizer_table()) names.push_back(row.name);
  return names;
}

const OptimizerRow& optimizer_row(const std::string& name) {
  for (const OptimizerRow& row : optimizer_table())
    if (name == row.name) return row;
  throw InternalError("no optimizer \"" + name + "\"");
}

}  // namespace zero
