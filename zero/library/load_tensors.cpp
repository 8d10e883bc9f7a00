// Loads a program's values into a sharded model.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "base/error.h"
#include "base/log.h"
#include "comm/agreement/agreement.h"
#include "zero/library/same_values.h"
#include "zero/library/sharded_impl.h"
#include "zero/library/world_impl.h"

namespace zero {
namespace {

/// Parameters under their first names, and buffers.
struct Values {
  NamedTensors parameters, buffers;

  NamedTensors all() const {
    NamedTensors both = parameters;
    both.insert(buffers.begin(), buffers.end());
    return both;
  }
};

void check_value(const std::string& name, const at::Tensor& value, const at::Tensor& wanted) {
  if (!value.defined()) throw InputError("load(tensors): " + name + " is an undefined tensor");
  if (value.sizes() != wanted.sizes())
    throw InputError(
        text("load(tensors): ", name, " has the shape ", value.sizes(), ", and ", wanted.sizes(), " in the module"));
  const bool converts = at::isFloatingType(value.scalar_type()) && at::isFloatingType(wanted.scalar_type());
  if (value.scalar_type() != wanted.scalar_type() && !converts)
    throw InputError(text("load(tensors): ", name, " is ", value.scalar_type(), ", and ", wanted.scalar_type(),
                          " in the module, and only floating types are converted to each other"));
}

/// Copies the tensors to host memory, sorted into parameters and buffers. Throws InputError if they do not match the
/// module.
Values sorted(const NamedTensors& tensors, const torch::nn::Module& module, const ModuleUnits& units, bool strict) {
  Values values;
  std::size_t known = 0;
  const auto take = [&](const std::string& name, const std::string& first_name, const at::Tensor& wanted,
                        NamedTensors& into) {
    const auto found = tensors.find(name);
    if (found == tensors.end()) return;
    ++known;
    check_value(name, found->second, wanted);
    into.emplace(first_name, found->second.detach().to(at::kCPU).contiguous());
  };
  const auto require = [&](bool holds, const std::string& name) {
    if (strict && !holds)
      throw InputError("load(tensors): " + name +
                       " of the module is not among them; load(tensors, /*strict=*/false) leaves what is not named");
  };
  for (const ModuleUnits::Named& parameter : units.parameters())
    take(parameter.name, parameter.first_name, parameter.tensor, values.parameters);
  for (const auto& buffer : module.named_buffers())
    if (buffer.value().defined()) take(buffer.key(), buffer.key(), buffer.value(), values.buffers);
  for (const ModuleUnits::Named& parameter : units.parameters())
    require(values.parameters.contains(parameter.first_name), parameter.name);
  for (const auto& buffer : module.named_buffers())
    if (buffer.value().defined()) require(values.buffers.contains(buffer.key()), buffer.key());
  if (known == tensors.size()) return values;
  for (const auto& [name, tensor] : tensors)
    if (!module.named_parameters().contains(name) && !module.named_buffers().contains(name))
      throw InputError("load(tensors): the module has no " + name);
  return values;
}

/// The values of a frozen group: the given values, and this rank's own part of all others.
class FrozenWeights final : public WeightSource {
 public:
  FrozenWeights(const NamedTensors& given, const ParameterGroup& group) : given_(given), group_(group) {
    std::vector<at::Tensor> parts;
    group.visit_weights(group.own(), [&](const at::Tensor& part) { parts.push_back(part.clone()); });
    if (!parts.empty()) own_ = at::cat(parts);
  }
  void check(const std::vector<TensorSpec>&) override {}
  void read(const TensorSpec& tensor, std::int64_t begin, std::int64_t count, const at::Tensor& out) override {
    if (const auto found = given_.find(tensor.name); found != given_.end()) {
      out.copy_(found->second.view({-1}).narrow(0, begin, count));
      return;
    }
    for (const FlatTensor& own : group_.layout().tensors())
      if (own.spec.name == tensor.name) out.copy_(own_.narrow(0, own.offset + begin - group_.own().begin, count));
  }

 private:
  const NamedTensors& given_;
  const ParameterGroup& group_;
  at::Tensor own_;  // flat
};

/// Writes given values to a shard's master weights and keeps the optimizer's states.
void write_masters(const NamedTensors& given, ParameterGroup& group, StateShard& shard) {
  const std::vector<StateSpec> specs = group.visited_states(shard);
  std::vector<at::Tensor> copies;
  for (const StateSpec& spec : specs) copies.push_back(at::empty({spec.numel(shard.numel())}, spec.type));
  const auto copy_of = [&](std::size_t state, std::int64_t element) {
    return static_cast<std::byte*>(copies[state].data_ptr()) + specs[state].bytes(element);
  };
  group.visit_states(shard, StateAccess::read, [&](const StateChunk& chunk) {
    for (std::size_t s = 0; s < specs.size(); ++s)
      std::memcpy(copy_of(s, chunk.begin), chunk.states[s], std::size_t(specs[s].bytes(chunk.end - chunk.begin)));
  });
  for (const FlatSlice& slice : shard.layout().slices(shard.begin(), shard.numel())) {
    const auto found = given.find(shard.layout().spec(slice.tensor).name);
    if (found == given.end()) continue;
    copies.front()
        .narrow(0, slice.range_begin, slice.count)
        .copy_(found->second.view({-1}).narrow(0, slice.tensor_begin, slice.count));
  }
  group.visit_states(shard, StateAccess::write, [&](const StateChunk& chunk) {
    for (std::size_t s = 0; s < specs.size(); ++s)
      std::memcpy(chunk.states[s], copy_of(s, chunk.begin), std::size_t(specs[s].bytes(chunk.end - chunk.begin)));
  });
}

void write_parameters(const NamedTensors& given, ModelStates& states) {
  for (const auto& group : states.groups()) {
    if (!group->spec().trainable) {
      FrozenWeights source(given, *group);
      group->read(source);
    }
    for (const auto& shard : group->states()) write_masters(given, *group, *shard);
  }
  states.resume(states.steps_done());
}

}  // namespace

void ShardedModel::load(const NamedTensors& tensors, bool strict) {
  const at::NoGradGuard no_grad;
  meet(impl_->world, Phase::load);
  torch::nn::Module& module = *impl_->module;
  Values values;
  all_or_none(*impl_->world.impl().control, [&] {
    const auto is_meta = [](const at::Tensor& one) { return one.defined() && one.is_meta(); };
    if (!impl_->sharded && std::ranges::any_of(module.parameters(), is_meta))
      throw InputError(
          "load(tensors): the module is on Meta and not divided yet: call model.optimizer(...) before, or load(path)");
    values = impl_->sharded ? sorted(tensors, module, impl_->sharded->units(), strict)
                            : sorted(tensors, module, ModuleUnits(module, impl_->options.units), strict);
  });
  check_same_values(values.all(), "load(tensors)", "for_each_parameter()", *impl_->world.impl().host);
  auto buffers = module.named_buffers();
  for (const auto& [name, value] : values.buffers) write_values(buffers[name], value);
  if (impl_->sharded) {
    impl_->drop_step();
    write_parameters(values.parameters, impl_->sharded->states());
    impl_->sharded->weights_changed();
  } else {
    auto parameters = module.named_parameters();
    for (const auto& [name, value] : values.parameters) write_values(parameters[name], value);
  }
}

}  // namespace zero
