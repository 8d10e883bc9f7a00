#include "zero/optim/optimizer_table.h"

#include "base/error.h"

namespace zero {

// In the files of rules/.
OptimizerRow adamw_row(), sgd_row(), lion_row(), adafactor_row(), prodigy_row(), muon_row(), adamw8bit_row();

const std::vector<OptimizerRow>& optimizer_table() {
  static const std::vector<OptimizerRow> rows{adamw_row(),   sgd_row(),  lion_row(),     adafactor_row(),
                                              prodigy_row(), muon_row(), adamw8bit_row()};
  return rows;
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
