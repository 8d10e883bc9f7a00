#include "zero/modules/sharded_module.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <set>

#include "base/error.h"
#include "base/log.h"
#include "base/memory_tracker.h"
#include "comm/agreement/rank0_scope.h"
#include "zero/core/buffers/flat_storage.h"
#include "zero/modules/module_weights.h"

namespace zero {
namespace {

void broadcast_from_first(const at::Tensor& tensor, Communicator& ranks) {
  if (tensor.numel() == 0) return;
  const at::Tensor whole = tensor.detach().contiguous();
  ranks.broadcast(whole, 0, {Phase::setup});
  if (!whole.is_same(tensor)) write_values(tensor, whole);
}

void share_parameters(const ModuleUnits& units, Communicator& ranks) {
  const at::NoGradGuard no_grad;
  for (const ModuleUnits::Named& parameter : units.parameters())
    if (parameter.name == parameter.first_name) broadcast_from_first(parameter.tensor, ranks);
}

}  // namespace

void write_values(const at::Tensor& tensor, const at::Tensor& values) {
  at::Tensor to = tensor.detach(), from = values;
  for (std::int64_t d = 0; d < to.dim(); ++d)
    if (to.stride(d) == 0 && to.size(d) > 1) {
      to = to.narrow(d, 0, 1);
      from = from.narrow(d, 0, 1);
    }
  to.copy_(from);
}

void share_buffers(const torch::nn::Module& module, Communicator& ranks) {
  const at::NoGradGuard no_grad;
  if (ranks.size() == 1) return;
  for (const auto& buffer : module.named_buffers())
    if (buffer.value().defined()) broadcast_from_first(buffer.value(), ranks);
}

ShardedModule::ShardedModule(torch::nn::Module& module, ModuleUnits units, Mesh& mesh, StatesOptions options,
                             bool trains, WeightSource* initial)
    : module_(module), units_(std::move(units)) {
  if (!trains) units_.freeze();
  check_same_modules(module, units_, mesh.host());
  if (!initial) share_parameters(units_, mesh.ranks());
  share_buffers(module, mesh.ranks());
  ModuleWeights given(units_);
  options.order = UnitOrder::any;
  options.watched = true;
  try {
    states_ = std::make_unique<ModelStates>(units_.units(), mesh, options);
    states_->load(initial ? *initial : given);
  } catch (...) {
    given.give_back(units_);
    throw;
  }
  open_ = std::make_unique<UnshardedCache>(states_->units());
  gradients_ = std::make_unique<GradientCollector>(states_->units(), mesh.host());
  watch();
}

// The leaves outlive their memory: using one afterwards throws.
ShardedModule::~ShardedModule() {
  open_->end();
  for (const auto& group : states_->groups()) group->weights().abandon(&abandoned_group());
}

void ShardedModule::watch() {
  const auto& groups = states_->groups();
  for (int g = 0; g < int(groups.size()); ++g) marks_.push_back({this, g});
  for (std::size_t g = 0; g < groups.size(); ++g) groups[g]->weights().watch(&marks_[g]);
  for (const ModuleUnits::Named& parameter : units_.parameters())
    if (parameter.name == parameter.first_name) watch_parameter(parameter.tensor);
}

ParameterGroup::TensorSink ShardedModule::under_all_names(const Visit& visit) const {
  return [this, visit](const TensorSpec& spec, const at::Tensor& value) {
    for (const ModuleUnits::Named& parameter : units_.parameters())
      if (parameter.first_name == spec.name) visit(parameter.name, value);
  };
}

void ShardedModule::for_each_parameter(const Visit& visit) {
  check_all_take_part("for_each_parameter()");
  states_->export_weights(under_all_names(visit));
}

void ShardedModule::for_each_gradient(const Visit& visit) { states_->export_gradients(under_all_names(visit)); }

void ShardedModule::check_all_take_part(const std::string& call) const {
  const int ranks = states_->mesh().ranks().size();
  if (ranks > 1 && Rank0Scope::is_active())
    throw InputError(text(call, " of a model of ", ranks,
                          " ranks, inside work that one rank does while the others wait (on_main(), main_first()): "
                          "they would not take part. Use the model outside that work, on all ranks, and only the "
                          "results inside it"));
}

void ShardedModule::before_read(const std::string& operation, const std::vector<int>& groups) {
  check_all_take_part(operation);
  const CategoryScope scope(MemoryCategory::activations);
  const bool planned = in_backward_ || at::GradMode::is_enabled();
  open_->use(groups, in_backward_ ? Phase::backward : Phase::forward, planned);
}

void ShardedModule::before_write(const std::string& operation, const std::vector<int>& groups) {
  const GroupSpec& spec = states_->groups()[std::size_t(groups.front())]->spec();
  throw InputError(operation + " writes to a parameter of unit " +
                   states_->units().units[std::size_t(spec.unit)]->name() +
                   ", which is sharded: every process holds a part of its values and the optimizer's copy of them. "
                   "Initialise, freeze, convert and move a module before it is sharded; later other values come by "
                   "model.load(), and what a forward itself changes is a buffer (an embedding with max_norm does)");
}

void ShardedModule::check_parameters() const {
  std::set<const c10::TensorImpl*> known;
  for (const ModuleUnits::Named& parameter : units_.parameters()) {
    known.insert(parameter.tensor.unsafeGetTensorImpl());
    const auto* mark = static_cast<const WatchedGroup*>(FlatStorage::owner_of(parameter.tensor));
    if (!mark || mark->watcher != this)
      throw InputError("parameter " + parameter.name +
                       " was given other data after the module was sharded (set_data(), to(), load): its values are no "
                       "longer those that are trained. Convert, move and load a module before it is sharded, or by "
                       "model.load()");
  }
  for (const ParameterUnit* unit : units_.units())
    for (const Parameter& parameter : unit->parameters())
      if (parameter.tensor.requires_grad() != parameter.trainable)
        throw InputError("parameter " + parameter.parts.front().name +
                         (parameter.trainable ? " was frozen" : " was unfrozen") +
                         " after the module was sharded (set_requires_grad()): its group would be trained as before. "
                         "Freeze and unfreeze before sharding; while another model has its backward, "
                         "auto frozen = model.freeze() freezes this one to the end of its scope");
  for (const auto& parameter : module_.named_parameters())
    if (parameter.value().defined() && !known.contains(parameter.value().unsafeGetTensorImpl()))
      throw InputError("parameter " + parameter.key() +
                       " was registered after the module was sharded, and would not be trained: register all before");
}

void ShardedModule::check_backward(const at::Tensor& loss) const {
  if (loss.numel() != 1)
    throw InputError(text("backward: the loss is a tensor of ", loss.numel(),
                          " elements, and must be a scalar: take its mean() or sum()"));
  if (!loss.requires_grad())
    throw InputError(
        "backward: the loss does not depend on a trained parameter, or its graph was not recorded (a NoGradGuard, "
        "detach(), item())");
  check_parameters();
}

void ShardedModule::backward(const at::Tensor& loss, double weight, MicroBatch micro) {
  const CategoryScope scope(MemoryCategory::activations);
  try {
    check_backward(loss);
    in_backward_ = true;
    gradients_->begin(micro, weight);
    loss.backward();
    gradients_->finish();
  } catch (...) {
    drop_step();
    throw;
  }
  in_backward_ = false;
  open_->end_pass();
}

void ShardedModule::drop_step() {
  in_backward_ = false;
  gradients_->drop();
  open_->drop_pass();
}

// Marks the tensors as written, as LibTorch's optimizers do by writing to them.
void ShardedModule::weights_changed() const {
  for (const ModuleUnits::Named& parameter : units_.parameters())
    if (!parameter.tensor.is_inference()) parameter.tensor.unsafeGetTensorImpl()->bump_version();
}

StepResult ShardedModule::update(const UpdateRule& rule) {
  const at::Tensor no_loss = at::zeros({}, at::TensorOptions().dtype(at::kDouble).device(states_->device()));
  StepResult result = states_->update(rule, no_loss).wait();
  if (result.taken) weights_changed();
  return result;
}

}  // namespace zero
