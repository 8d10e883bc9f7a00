#include <sstream>

#include "base/error.h"
#include "base/log.h"
#include "comm/object_collectives.h"
#include "zero/modules/sharded_module.h"

namespace zero {
namespace {

/// A line for each thing that ranks must have alike.
std::string describe(const torch::nn::Module& module, const ModuleUnits& units) {
  std::ostringstream lines;
  for (const ParameterUnit* unit : units.units()) {
    lines << "unit " << unit->name() << '\n';
    for (const Parameter& parameter : unit->parameters())
      lines << "parameter " << parameter.parts.front().name << ' ' << parameter.tensor.sizes() << ' '
            << parameter.tensor.scalar_type() << (parameter.trainable ? "" : ", frozen") << '\n';
  }
  for (const auto& buffer : module.named_buffers())
    if (buffer.value().defined())
      lines << "buffer " << buffer.key() << ' ' << buffer.value().sizes() << ' ' << buffer.value().scalar_type()
            << '\n';
  return lines.str();
}

std::pair<std::string, std::string> first_difference(const std::string& one, const std::string& other) {
  std::istringstream a(one), b(other);
  std::string line_a, line_b;
  do {
    if (!std::getline(a, line_a)) line_a = "nothing more";
    if (!std::getline(b, line_b)) line_b = "nothing more";
  } while (line_a == line_b);
  return {line_a, line_b};
}

}  // namespace

void check_same_modules(const torch::nn::Module& module, const ModuleUnits& units, Communicator& ranks) {
  const std::vector<std::string> all = all_gather_texts(ranks, describe(module, units));
  for (std::size_t r = 1; r < all.size(); ++r)
    if (all[r] != all[0]) {
      const auto [first, other] = first_difference(all[0], all[r]);
      throw InputError(text("the processes have different modules: where rank 0 has ", first, ", rank ", r, " has ",
                            other, ". Build the same module on every process"));
    }
}

}  // namespace zero
