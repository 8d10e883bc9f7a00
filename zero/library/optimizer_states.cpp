// Reads and sets the states of a sharded model's optimizer, by parameter name.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <functional>

#include "base/error.h"
#include "base/log.h"
#include "comm/agreement/agreement.h"
#include "zero/checkpoint/state_shares.h"
#include "zero/library/same_values.h"
#include "zero/library/sharded_impl.h"
#include "zero/library/world_impl.h"

namespace zero {
namespace {

/// The place of a trained parameter in the states.
struct Place {
  StateShard* shard = nullptr;
  int tensor = 0;  // index in the shard's layout

  const TensorSpec& spec() const { return shard->layout().spec(tensor); }
  /// Excludes the master weights, which are the parameter itself.
  bool is_kept(std::size_t state) const { return state >= std::size_t(shard->has_master()); }
};

/// Throws InputError unless the parameter is trained.
Place place_of(const std::string& parameter, ShardedModule& model) {
  for (const ModuleUnits::Named& named : model.units().parameters()) {
    if (named.name != parameter) continue;
    for (const auto& group : model.states().groups())
      for (const auto& shard : group->states())
        for (int t = 0; t < int(shard->layout().tensors().size()); ++t)
          if (shard->layout().spec(t).name == named.first_name) return {shard.get(), t};
    throw InputError("the optimizer keeps nothing of " + parameter + ": it is frozen");
  }
  throw InputError("the module has no parameter " + parameter);
}

/// Calls visit(state, begin, part) for this rank's elements of each state; `begin`: index in the whole state.
using VisitPart = std::function<void(std::size_t state, std::int64_t begin, const at::Tensor& part)>;
void for_each_part(const Place& place, StateAccess access, const VisitPart& visit) {
  StateShard& shard = *place.shard;
  const std::vector<StateSpec>& specs = shard.store().states();
  shard.store().for_each_chunk(access, [&](const StateChunk& chunk) {
    for (const FlatSlice& slice : shard.layout().slices(shard.begin() + chunk.begin, chunk.end - chunk.begin)) {
      if (slice.tensor != place.tensor) continue;
      const std::vector<at::Tensor> parts = shard.view(chunk, chunk.begin + slice.range_begin, slice.count);
      for (std::size_t s = 0; s < specs.size(); ++s)
        if (place.is_kept(s)) visit(s, slice.tensor_begin / specs[s].grain, parts[s]);
    }
  });
}

/// Returns the type in which values of this type can be added to zeros exactly.
at::ScalarType sum_type_of(at::ScalarType type) {
  if (!at::isFloatingType(type)) return at::kLong;
  return type == at::kDouble ? at::kDouble : at::kFloat;
}

/// Returns the statistics of the tensor or of all tensors, which every rank holds.
std::vector<SavedStatistic> statistics_of(const std::string& parameter, ModelStates& states) {
  std::vector<SavedStatistic> found;
  for (const SavedStatistic& statistic : saved_statistics(states))
    if (const auto colon = statistic.name.find(':'); statistic.name.substr(colon + 1) == parameter)
      found.push_back({statistic.name.substr(0, colon), statistic.values});
  return found;
}

/// Gathers each full state. If several ranks hold an element, one of them contributes it. Collective.
NamedTensors whole_states(const Place& place, ModelStates& states) {
  const std::vector<StateSpec>& specs = place.shard->store().states();
  const std::int64_t numel = place.spec().numel();
  std::vector<at::Tensor> whole;
  for (const StateSpec& spec : specs) whole.push_back(at::zeros({spec.numel(numel)}, sum_type_of(spec.type)));
  const bool divided = states.options().plan.optimizer == Placement::sharded;
  if (!divided || states.mesh().index(states.replica_axes()) == 0)
    for_each_part(place, StateAccess::read, [&](std::size_t s, std::int64_t begin, const at::Tensor& part) {
      whole[s].narrow(0, begin, part.numel()).copy_(part);
    });
  NamedTensors named;
  for (std::size_t s = 0; s < specs.size(); ++s) {
    if (!place.is_kept(s)) continue;
    if (divided) states.host().all_reduce(whole[s], {whole[s].scalar_type() == at::kDouble ? at::kDouble : at::kFloat});
    const at::Tensor value = whole[s].to(specs[s].type);
    named[specs[s].name] =
        specs[s].grain == 1 && at::isFloatingType(specs[s].type) ? value.view(place.spec().shape) : value;
  }
  return named;
}

[[noreturn]] void refuse(const std::string& parameter, const std::string& name) {
  throw InputError("the optimizer keeps no " + name + (parameter.empty() ? "" : " of " + parameter) +
                   ": optimizer.states(parameter) has the names");
}

void check_count(const std::string& parameter, const std::string& name, const at::Tensor& value, std::int64_t wanted) {
  if (!value.defined() || value.numel() != wanted)
    throw InputError(text("set_states(): ", name, " of ", parameter, " has ", value.defined() ? value.numel() : 0,
                          " elements, and ", wanted, " in the optimizer"));
}

/// Throws InputError that names a state that the parameter lacks or whose size differs.
void check_states(const std::string& parameter, const NamedTensors& named, const Place& place,
                  const std::vector<SavedStatistic>& statistics) {
  const std::vector<StateSpec> specs = place.shard ? place.shard->store().states() : std::vector<StateSpec>();
  for (const auto& [name, value] : named) {
    const auto spec = std::ranges::find(specs, name, &StateSpec::name);
    const auto statistic = std::ranges::find(statistics, name, &SavedStatistic::name);
    if (spec != specs.end() && place.is_kept(std::size_t(spec - specs.begin())))
      check_count(parameter, name, value, spec->numel(place.spec().numel()));
    else if (statistic != statistics.end())
      check_count(parameter, name, value, statistic->values.numel());
    else
      refuse(parameter, name);
  }
}

/// Flattens into host memory.
NamedTensors flat(const NamedTensors& named) {
  NamedTensors all;
  for (const auto& [name, value] : named) all[name] = value.detach().to(at::kCPU).reshape({-1}).contiguous();
  return all;
}

void check_same_on_all(const std::string& parameter, const NamedTensors& values, Communicator& ranks) {
  NamedTensors named;
  for (const auto& [name, value] : values) named[parameter + "/" + name] = value;
  check_same_values(named, "set_states()", "optimizer.states()", ranks);
}

}  // namespace

NamedTensors ShardedModel::Impl::optimizer_states(const std::string& parameter) const {
  const at::NoGradGuard no_grad;
  ShardedModule& model = divided("optimizer.states()");
  meet(world, Phase::save);
  NamedTensors named;
  std::string first_name;
  if (!parameter.empty()) {
    const Place place = place_of(parameter, model);
    named = whole_states(place, model.states());
    first_name = place.spec().name;
  }
  for (const SavedStatistic& statistic : statistics_of(first_name, model.states()))
    named[statistic.name] = statistic.values.to(at::kCPU).clone();
  return named;
}

void ShardedModel::Impl::set_optimizer_states(const std::string& parameter, const NamedTensors& named) const {
  const at::NoGradGuard no_grad;
  ShardedModule& model = divided("optimizer.set_states()");
  meet(world, Phase::load);
  Place place;
  std::vector<SavedStatistic> statistics;
  NamedTensors values;
  all_or_none(*world.impl().control, [&] {
    if (!parameter.empty()) place = place_of(parameter, model);
    statistics = statistics_of(parameter.empty() ? "" : place.spec().name, model.states());
    check_states(parameter, named, place, statistics);
    values = flat(named);
  });
  check_same_on_all(parameter, values, *world.impl().host);
  for (const SavedStatistic& statistic : statistics)
    if (const auto found = values.find(statistic.name); found != values.end()) statistic.values.copy_(found->second);
  if (!place.shard) return;
  const std::vector<StateSpec>& specs = place.shard->store().states();
  for_each_part(place, StateAccess::read_write, [&](std::size_t s, std::int64_t begin, const at::Tensor& part) {
    if (const auto found = values.find(specs[s].name); found != values.end())
      at::Tensor(part).copy_(found->second.narrow(0, begin, part.numel()));
  });
}

}  // namespace zero
