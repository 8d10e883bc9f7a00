// Shards a model's states over the processes.
#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>

#include "base/error.h"
#include "base/log.h"
#include "comm/agreement/agreement.h"
#include "comm/object_collectives.h"
#include "zero/library/nn/watched_batch_norm.h"
#include "zero/library/same_draws.h"
#include "zero/library/sharded_impl.h"
#include "zero/library/world_impl.h"

namespace zero {
namespace {

Precision precision_of(at::ScalarType compute) {
  if (compute == at::kDouble) return {at::kDouble, at::kDouble, at::kDouble, at::kDouble};
  if (compute == at::kFloat || compute == at::kBFloat16) return {compute, at::kFloat, at::kFloat, at::kFloat};
  throw InputError(text("precision ", compute, ": parameters are of fp32, fp64 or bf16; choose one by precision"));
}

/// Throws InputError if states cannot be stored as the options say.
StateStorage storage_of(const ShardOptions& options, const Precision& precision, const OptimizerOptions& optimizer) {
  if (options.state_dtype != fp32 && options.state_dtype != bf16)
    throw InputError(text("state_dtype = ", options.state_dtype, ": zero::fp32 or zero::bf16"));
  const StateStorage storage{options.state_dtype == bf16, options.master_dtype == Masters::split,
                             std::uint64_t(options.seed)};
  if (storage.bf16_states && precision.master != at::kFloat)
    throw InputError(text("state_dtype = bf16: rounds the fp32 states of fp32 or bf16 parameters, and these are of ",
                          precision.compute, ": leave it out"));
  if (storage.bf16_states)
    if (const auto why = why_no_bf16_states(optimizer, precision.master))
      throw InputError("state_dtype = bf16: " + *why);
  if (storage.split_master && precision.compute != at::kBFloat16)
    throw InputError(text("master_dtype = split: splits fp32 masters over bf16 parameters, and those of ",
                          precision.compute, " are masters themselves: leave it out, or give precision = zero::bf16"));
  return storage;
}

}  // namespace

ModuleUnits ShardedModel::Impl::checked_units() const {
  ModuleUnits units(*module, options.units);
  if (units.device() != world.device() && !units.device().is_meta())
    throw InputError(text("the module is on ", units.device(), " and this process computes on ", world.device(),
                          ": module->to(world.device()) before it is sharded"));
  const auto is_trained = [](const ParameterUnit* unit) {
    return std::ranges::any_of(unit->parameters(), [](const Parameter& parameter) { return parameter.trainable; });
  };
  if (trains && std::ranges::none_of(units.units(), is_trained))
    throw InputError(
        "model.optimizer(...): all parameters of the module are frozen; leave the optimizer out, or unfreeze "
        "(set_requires_grad(true)) what is to be trained before");
  return units;
}

StatesOptions ShardedModel::Impl::states_options(at::ScalarType parameters) const {
  StatesOptions states;
  states.plan = ShardPlan::for_stage(options.stage);
  states.precision = precision_of(options.precision.value_or(parameters));
  states.optimizer = optimizer;
  if (trains) states.storage = storage_of(options, states.precision, optimizer);
  states.device = world.device();
  states.open_groups = options.open_groups;
  states.save_frozen = true;
  states.overlap = world.device().is_cuda() && world.size() > 1;
  return states;
}

// Sharding also happens if the first forward is inference, since parameters may be trained or evaluated later.
void ShardedModel::Impl::divide() {
  const c10::InferenceMode not_inference(false);
  nn::link_watched_batch_norm();
  std::optional<ModuleUnits> units;
  std::unique_ptr<WeightSource> deferred;
  // All processes draw, so that their generators advance alike. Rank 0 draws first, since simulated ranks share a
  // generator.
  const std::int64_t seed = broadcast_number(mesh.host(), world.is_main() ? seed_of_deferred() : 0, 0);
  if (!world.is_main()) (void)seed_of_deferred();
  all_or_none(mesh.host(), [&] {
    units = checked_units();
    if (units->device().is_meta()) deferred = values_of_deferred(*units, std::uint64_t(seed));
  });
  check_same_settings(units->type());
  StatesOptions states = states_options(units->type());
  states.first_unit = world.impl().name_units(units->names());
  if (plan_on(mesh.shape(), states).stage() == 3 && world.is_main())
    if (const auto large = units->large_unit()) log_warning(*large);
  if (!trains) warn_of_same_draws(*module, world);
  sharded = std::make_unique<ShardedModule>(*module, std::move(*units), mesh, states, trains, deferred.get());
  initial_file.reset();
}

}  // namespace zero
