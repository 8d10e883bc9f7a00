#include "zero/plan/plan_table.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/byte_count.h"
#include "base/error.h"
#include "base/files/lookup.h"
#include "base/files/new_file.h"
#include "base/log.h"

namespace zero {
namespace {

std::string in_bytes(double bytes) { return bytes < 1 ? "-" : bytes_text(std::int64_t(bytes)); }

std::vector<std::pair<const char*, double>> parts_of(const StepTime& time) {
  return {{"products", time.compute.products},     {"attention", time.compute.attention},
          {"other kernels", time.compute.other},   {"gathers of weights", time.gathers},
          {"sums of gradients", time.sums},        {"activations between ranks", time.axes},
          {"optimizer", time.optimizer},           {"disk", time.disk},
          {"waiting in the pipeline", time.bubble}};
}

std::string line_of(const std::vector<std::string>& cells, const std::vector<std::size_t>& widths) {
  std::string line;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::string space(widths[i] - cells[i].size(), ' ');
    line += (i == 0 ? "" : "  ") + (i == 0 || i + 1 == cells.size() ? cells[i] + space : space + cells[i]);
  }
  while (line.ends_with(' ')) line.pop_back();
  return line + "\n";
}

std::vector<std::string> row_of(const PlannedLayout& layout, const PlanMachine& machine, bool is_given) {
  return {layout.describe() + (is_given ? " (as given)" : ""),
          text(layout.batch.local_batch_size, " x ", layout.batch.accumulation),
          bytes_text(layout.rank_bytes(machine)),
          three_digits(layout.time.seconds()),
          three_digits(layout.tokens_per_second()),
          in_bytes(layout.time.bytes_in_node),
          in_bytes(layout.time.bytes_between),
          in_bytes(layout.time.bytes_disk),
          layout.time.bound()};
}

nlohmann::ordered_json json_of(const PlannedLayout& layout, const PlanMachine& machine) {
  nlohmann::ordered_json one;
  one["layout"] = layout.describe();
  Config config = layout.config;
  for (const ConfigKey* key : layout_keys())
    if (const auto value = read_field(key->field(config))) one["settings"][key->full_name()] = toml_text(*value);
  one["local_batch_size"] = layout.batch.local_batch_size;
  one["accumulation"] = layout.batch.accumulation;
  one["seconds"] = layout.time.seconds();
  one["tokens_per_second"] = layout.tokens_per_second();
  one["bound_by"] = layout.time.bound();
  for (const auto& [name, seconds] : parts_of(layout.time)) one["parts"][name] = seconds;
  one["rank_bytes"] = layout.rank_bytes(machine);
  one["tracked_bytes"] = layout.memory.plan.training_peak();
  one["fits"] = layout.memory.fits;
  one["sent_in_node_bytes"] = layout.time.bytes_in_node;
  one["sent_between_bytes"] = layout.time.bytes_between;
  one["disk_bytes"] = layout.time.bytes_disk;
  return one;
}

nlohmann::ordered_json compared(double predicted, double measured) {
  return {{"predicted", predicted}, {"measured", measured}, {"error", predicted / measured - 1}};
}

nlohmann::ordered_json comparison_of(const MeasuredFigures& measured, const PlannedLayout& layout) {
  nlohmann::ordered_json comparison{{"timed_steps", measured.steps},
                                    {"seconds", compared(layout.time.seconds(), measured.seconds)}};
  if (measured.peak_bytes > 0)
    comparison["tracked_bytes"] = compared(double(layout.memory.plan.training_peak()), double(measured.peak_bytes));
  return comparison;
}

}  // namespace

std::string three_digits(double value) {
  char words[32];
  const int digits = value >= 100 ? 0 : value >= 10 ? 1 : value >= 1 ? 2 : 3;
  std::snprintf(words, sizeof words, value < 0.1 ? "%.*g" : "%.*f", digits, value);
  return words;
}

std::string plan_table(const SearchResult& result, const PlanMachine& machine) {
  std::vector<std::vector<std::string>> rows{
      {"layout", "batch", "memory", "s/step", "tokens/s", "in node", "between", "disk", "bound by"}};
  bool has_given = !result.given;
  for (const PlannedLayout& layout : result.best) {
    const bool is_given = result.given && layout.is_same(*result.given);
    has_given |= is_given;
    rows.push_back(row_of(layout, machine, is_given));
  }
  if (!has_given) rows.push_back(row_of(*result.given, machine, true));
  std::vector<std::size_t> widths(rows.front().size(), 0);
  for (const auto& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  std::string table;
  for (const auto& row : rows) table += line_of(row, widths);
  return table;
}

std::string parts_of_step(const StepTime& time) {
  std::string lines;
  for (const auto& [name, seconds] : parts_of(time))
    if (seconds >= 0.01 * time.seconds())
      lines += text("  ", name, ": ", three_digits(seconds), " s (", int(std::lround(100 * seconds / time.seconds())),
                    " %)\n");
  return lines;
}

std::string plan_json(const SearchResult& result, const PlanMachine& machine, const MeasuredFigures* measured,
                      const std::function<std::int64_t(const PlannedLayout&)>& largest_batch) {
  nlohmann::ordered_json plan;
  plan["version"] = 1;
  plan["machine"] = machine.describe();
  plan["ranks"] = machine.ranks();
  plan["sources"] = machine.sources();
  plan["notes"] = machine.notes;
  plan["layouts"] = nlohmann::ordered_json::array();
  for (const PlannedLayout& layout : result.best) {
    nlohmann::ordered_json one = json_of(layout, machine);
    if (largest_batch) one["largest_local_batch_size"] = largest_batch(layout);
    plan["layouts"].push_back(one);
  }
  if (result.given) plan["given"] = json_of(*result.given, machine);
  if (!result.why_not_given.empty()) plan["given_refused"] = result.why_not_given;
  if (measured) plan["comparison"] = comparison_of(*measured, result.best[0]);
  return plan.dump() + "\n";
}

void write_plan(const std::string& path, const PlannedLayout& layout, const PlanMachine& machine,
                const std::string& command) {
  if (is_there(path)) throw InputError("--write " + path + ": exists; name another file, or remove that one");
  Config config = layout.config;
  config.training.global_batch_size = layout.batch.global_batch_size;
  std::string words =
      text("# Planned for ", machine.describe(), ".\n# ", layout.describe(), ": ", three_digits(layout.time.seconds()),
           " s a step predicted, ", three_digits(layout.tokens_per_second()), " tokens/s, bound by ",
           layout.time.bound(), ";\n# ", bytes_text(layout.rank_bytes(machine)),
           " for the fullest rank.\n# Start: ", command, "\n", resolved_toml(config));
  NewFile file(path);
  file.append(words.data(), std::int64_t(words.size()));
  file.publish();
}

}  // namespace zero
