// Summarises a sharded model's units and a process's memory.
#include <algorithm>
#include <iomanip>
#include <sstream>

#include "base/byte_count.h"
#include "comm/fake/meta_communicator.h"
#include "zero/library/sharded_impl.h"

namespace zero {
namespace {

/// Bytes of one process between steps.
struct HeldBytes {
  std::int64_t parameters = 0, gradients = 0, optimizer = 0;
  std::int64_t passing = 0;  // buffers for unsharded units and for gradients in flight

  std::int64_t sum() const { return parameters + gradients + optimizer + passing; }
};

/// Copies of the units without tensors.
std::vector<std::unique_ptr<ParameterUnit>> without_tensors(const Units& units) {
  std::vector<std::unique_ptr<ParameterUnit>> copies;
  for (const ParameterUnit* unit : units) {
    copies.push_back(std::make_unique<ParameterUnit>(unit->name()));
    for (const Parameter& given : unit->parameters()) {
      Parameter parameter;
      parameter.parts = given.parts;
      parameter.trainable = given.trainable;
      copies.back()->parameters().push_back(parameter);
    }
  }
  return copies;
}

/// Makes the states on Meta for this many ranks, and counts their bytes.
HeldBytes held_bytes(const Units& units, const MeshShape& shape, StatesOptions options) {
  const auto copies = without_tensors(units);
  Units pointers;
  for (const auto& copy : copies) pointers.push_back(copy.get());
  MetaCommunicator ranks(shape.ranks());
  Mesh mesh(ranks, shape);
  options.device = at::kMeta;
  options.order = UnitOrder::any;
  options.overlap = false;
  const ModelStates states(pointers, mesh, options);
  HeldBytes bytes;
  for (const auto& group : states.groups()) {
    bytes.parameters += group->weight_bytes();
    bytes.gradients += group->gradient_bytes();
    for (const auto& shard : group->states())
      bytes.optimizer += state_bytes(shard->store().states(), shard->store().elements());
  }
  bytes.passing = states.gather_buffer_bytes() + states.reduce_buffer_bytes();
  return bytes;
}

struct Sizes {
  std::int64_t all = 0, trained = 0;
};

Sizes sizes_of(const ParameterUnit& unit) {
  Sizes sizes;
  for (const Parameter& parameter : unit.parameters()) {
    sizes.all += parameter.numel();
    if (parameter.trainable) sizes.trained += parameter.numel();
  }
  return sizes;
}

void write_units(std::ostream& out, const Units& units) {
  std::size_t width = 4;
  for (const ParameterUnit* unit : units) width = std::max(width, unit->name().size());
  const auto row = [&](const std::string& name, const auto& all, const auto& trained) {
    out << std::left << std::setw(int(width)) << name << std::right << std::setw(16) << all << std::setw(16) << trained
        << '\n';
  };
  row("unit", "parameters", "trained");
  Sizes sum;
  for (const ParameterUnit* unit : units) {
    const Sizes sizes = sizes_of(*unit);
    row(unit->name(), sizes.all, sizes.trained);
    sum.all += sizes.all;
    sum.trained += sizes.trained;
  }
  row("all", sum.all, sum.trained);
}

}  // namespace

std::string ShardedModel::summary() const {
  std::optional<ModuleUnits> fresh;
  if (!impl_->sharded) {
    fresh.emplace(*impl_->module, impl_->options.units);
    if (!impl_->trains) fresh->freeze();
  }
  const ModuleUnits& units = fresh ? *fresh : impl_->sharded->units();
  std::ostringstream out;
  write_units(out, units.units());
  const int processes = impl_->world.size();
  out << "\na process of " << processes << " holds  parameters   gradients   optimizer  open units         all\n";
  StatesOptions options = impl_->states_options(units.type());
  for (int stage = 0; stage <= (processes > 1 ? 3 : 0); ++stage) {
    options.plan = ShardPlan::for_stage(stage);
    const HeldBytes bytes = held_bytes(units.units(), impl_->mesh.shape(), options);
    out << "stage " << stage << (stage == this->stage() ? " (this one)" : "           ");
    for (const std::int64_t part : {bytes.parameters, bytes.gradients, bytes.optimizer, bytes.passing, bytes.sum()})
      out << std::setw(12) << bytes_text(part);
    out << '\n';
  }
  return out.str();
}

}  // namespace zero
