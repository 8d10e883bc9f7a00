#include "zero/optim/optimizer_options.h"

#include <sstream>

namespace zero {
namespace {

template <typename Value>
void line(std::ostream& lines, const char* name, const Value& value) {
  lines << name << ' ' << value << '\n';
}
template <typename Value>
void line(std::ostream& lines, const char* name, const std::optional<Value>& value) {
  if (value) line(lines, name, *value);
}

// A field more, and this does not compile.
void describe(std::ostream& lines, const OptimizerGroup& group) {
  const auto& [match, optimizer, lr, weight_decay, lr_adamw, place] = group;
  static_cast<void>(place);  // where it stands, not what it is
  lines << "group";
  for (const std::string& pattern : match) lines << ' ' << pattern;
  lines << '\n';
  line(lines, "group's optimizer", optimizer);
  line(lines, "group's lr", lr);
  line(lines, "group's weight_decay", weight_decay);
  line(lines, "group's lr_adamw", lr_adamw);
}

}  // namespace

std::string lines_of(const OptimizerOptions& options) {
  const auto& [name, lr, weight_decay, beta1, beta2, eps, momentum, nesterov, d0, d_coef, use_bias_correction,
               safeguard_warmup, ns_steps, lr_adamw, groups] = options;
  std::ostringstream lines;
  lines.precision(17);
  line(lines, "optimizer", name);
  line(lines, "lr", lr);
  line(lines, "weight_decay", weight_decay);
  line(lines, "beta1", beta1);
  line(lines, "beta2", beta2);
  line(lines, "eps", eps);
  line(lines, "momentum", momentum);
  line(lines, "nesterov", nesterov);
  line(lines, "d0", d0);
  line(lines, "d_coef", d_coef);
  line(lines, "use_bias_correction", use_bias_correction);
  line(lines, "safeguard_warmup", safeguard_warmup);
  line(lines, "ns_steps", ns_steps);
  line(lines, "lr_adamw", lr_adamw);
  for (const OptimizerGroup& group : groups) describe(lines, group);
  return lines.str();
}

}  // namespace zero
