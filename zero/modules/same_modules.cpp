#include <sstream>

#include "base/error.h"
#include "base/log.h"
#include "comm/agreement/same_lines.h"
#include "zero/modules/sharded_module.h"

namespace zero {
namespace {

/// One line for each property that must be equal on all ranks.
std::string describe(const torch::nn::Module& module, const ModuleUnits& units) {
  std::ostringstream lines;
  for (const ParameterUnit* unit : units.units()) {
    lines << "unit " << unit->name() << '\n';
    for (const Parameter& parameter : unit->parameters())
      lines << "parameter " << parameter.parts.front().name << ' ' << parameter.tensor.sizes() << ' '
            << parameter.tensor.scalar_type() << (parameter.trainable ? "" : ", frozen")
            << (parameter.tensor.is_meta() ? ", deferred" : "") << '\n';
  }
  for (const auto& buffer : module.named_buffers())
    if (buffer.value().defined())
      lines << "buffer " << buffer.key() << ' ' << buffer.value().sizes() << ' ' << buffer.value().scalar_type()
            << '\n';
  return lines.str();
}

}  // namespace

void check_same_modules(const torch::nn::Module& module, const ModuleUnits& units, Communicator& ranks) {
  if (const auto found = difference_of_lines(ranks, describe(module, units)))
    throw InputError(text("the processes have different modules: where rank 0 has ", found->first, ", rank ",
                          found->rank, " has ", found->other, ". Build the same module on every process"));
}

}  // namespace zero
