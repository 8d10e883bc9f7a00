#include "zero/train/records/figure_tags.h"

#include <set>

namespace zero {
namespace {

std::string tag_of(const std::string& name) {
  static const std::set<std::string> of_the_system{
      "seconds", "tokens_per_second", "peak_bytes", "host_available_bytes", "host_used_bytes", "load_average"};
  if (name == "validation_loss") return "validation/loss";
  if (is_part(name)) return "time/" + name;
  return (of_the_system.contains(name) ? "system/" : "train/") + name;
}

}  // namespace

std::vector<std::pair<std::string, double>> tagged_figures(const StepMetrics& metrics) {
  std::vector<std::pair<std::string, double>> figures = figures_of(metrics);
  for (auto& [name, value] : figures) name = tag_of(name);
  return figures;
}

}  // namespace zero
