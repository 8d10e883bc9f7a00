#include "zero/library/state_files.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "base/error.h"
#include "base/log.h"
#include "comm/agreement/agreement.h"
#include "comm/agreement/same_lines.h"
#include "comm/object_collectives.h"
#include "zero/checkpoint/resume_states.h"
#include "zero/checkpoint/save_checkpoint.h"
#include "zero/library/world_impl.h"

namespace zero {
namespace {

/// The states of a process's generators as bytes, concatenated.
at::Tensor random_state(at::Device device) {
  std::vector<at::Tensor> states{at::detail::getDefaultCPUGenerator().get_state()};
  if (device.is_cuda()) states.push_back(at::globalContext().defaultGenerator(device).get_state());
  return at::cat(states).view({-1});
}

void set_random_state(at::Device device, const at::Tensor& state) {
  at::Generator host = at::detail::getDefaultCPUGenerator();
  const std::int64_t bytes = host.get_state().numel();
  host.set_state(state.narrow(0, 0, bytes).clone());
  if (!device.is_cuda()) return;
  at::Generator generator = at::globalContext().defaultGenerator(device);
  generator.set_state(state.narrow(0, bytes, state.numel() - bytes).clone());
}

/// The states of all processes, by rank.
at::Tensor gather_random_states(const World& world) {
  const at::Tensor own = random_state(world.device());
  const at::Tensor all = at::empty({own.numel() * world.size()}, at::kByte);
  world.impl().host->all_gather_into(all, own);
  return all;
}

void check_same_folder(const World& world, const std::string& folder, const std::string& call) {
  if (const auto found = difference_of_lines(*world.impl().host, folder))
    throw InputError(text(call, ": process ", found->rank, " names the folder ", found->other, ", process 0 ",
                          found->first, ": all processes name the same"));
}

StateOwners owners_of(const StateModels& models) {
  StateOwners owners;
  for (const auto& [name, model] : models) owners[name] = model;
  return owners;
}

/// The contents of one folder: the models' states, their current buffers and all processes' random states.
class HeldStates {
 public:
  HeldStates(const StateModels& models, CheckpointValues& values, const World& world,
             const std::function<void()>& take_values = {})
      : models_(models), world_(world), held_(states_of(models)) {
    held_.values = &values;
    held_.take_values = take_values;
    held_.kept.push_back({text("random:", world.size()), gather_random_states(world), /*required=*/false});
  }

  const CheckpointModels& get() const { return held_; }

  /// Call after reading the states.
  void take() const {
    for (const auto& [name, model] : models_) {
      model->sharded->weights_changed();
      model->take_buffers();
    }
    const at::Tensor& all = held_.kept.front().values;
    const std::int64_t bytes = all.numel() / world_.size();
    set_random_state(world_.device(), all.narrow(0, world_.rank() * bytes, bytes));
  }

 private:
  static CheckpointModels states_of(const StateModels& models) {
    std::vector<CheckpointModel> states;
    for (const auto& [name, model] : models) {
      model->keep_buffers();
      states.emplace_back(model->sharded->states(), name, model->module->name());
    }
    return CheckpointModels(std::move(states));
  }

  const StateModels& models_;
  const World& world_;
  CheckpointModels held_;
};

}  // namespace

void save_state_of(const StateModels& models, CheckpointValues& values, const World& world, const std::string& folder,
                   const std::string& call) {
  std::int64_t steps = 0;
  for (const auto& [name, model] : models) {
    if (model->progress.done > 0)
      throw InputError(call + " in the middle of a step: after optimizer.step(), which its gradients belong to");
    steps = std::max(steps, model->sharded->states().steps_done());
  }
  meet(world, Phase::save);
  check_same_folder(world, folder, call);
  World::Impl& impl = world.impl();
  CheckpointFolders folders(*impl.files, folder);
  on_first(*impl.control, [&] {
    impl.state_folders->check_save(folder, owners_of(models));
    folders.make_root();
    impl.state_folders->lock(folder);
  });
  const HeldStates states(models, values, world);
  RunDescription run;
  run.ranks = world.size();
  run.stage = models.begin()->second->stage();
  RunPosition position;
  position.steps = position.updates = steps;
  try {
    save_checkpoint(states.get(), run, position, folders, *impl.files, *impl.control);
  } catch (const Error&) {
    if (world.is_main()) folders.discard(steps);  // otherwise it would occupy disk space
    throw;
  }
  if (world.is_main()) impl.state_folders->set_owners(folder, owners_of(models));
}

std::int64_t load_state_of(const StateModels& models, CheckpointValues& values, const World& world,
                           const std::string& folder, const std::string& call,
                           const std::function<void()>& take_values) {
  meet(world, Phase::load);
  check_same_folder(world, folder, call);
  World::Impl& impl = world.impl();
  on_first(*impl.control, [&] {
    impl.state_folders->check_load(folder, owners_of(models));
    impl.state_folders->lock(folder);
  });
  for (const auto& [name, model] : models) model->drop_step();
  CheckpointFolders folders(*impl.files, folder);
  const HeldStates states(models, values, world, take_values);
  const RunPosition position =
      resume_states(states.get(), folders, *impl.files, *impl.control,
                    text("train from the beginning, or name the folder that ",
                         call == "load_state()" ? "save_state()" : "save()", " was given, no step's in it"));
  states.take();
  if (world.is_main()) impl.state_folders->set_owners(folder, owners_of(models));
  return position.updates;
}

bool has_state_in(const std::string& folder, const World& world) {
  World::Impl& impl = world.impl();
  bool found = false;
  world.on_main([&] {
    if (!impl.state_folders->lock(folder)) return;
    CheckpointFolders folders(*impl.files, folder);
    folders.take_back();
    found = !folders.steps().empty();
  });
  return broadcast_number(*impl.ranks, found, 0) != 0;
}

}  // namespace zero
