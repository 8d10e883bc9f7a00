// Loads a sharded model's values from files and saves them.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <set>

#include "base/error.h"
#include "base/log.h"
#include "comm/agreement/agreement.h"
#include "models/formats/safetensors.h"
#include "models/formats/safetensors_writer.h"
#include "zero/core/buffers/flat_storage.h"
#include "zero/library/sharded_impl.h"
#include "zero/library/state_files.h"
#include "zero/library/world_impl.h"
#include "zero/modules/deferred_weights.h"

namespace zero {
namespace {

/// Parameters of one file, including frozen ones.
class FileWeights final : public WeightSource {
 public:
  explicit FileWeights(const SafetensorsFile& file) : file_(file) {}
  void check(const std::vector<TensorSpec>&) override {}  // check_file() has checked them
  void read(const TensorSpec& tensor, std::int64_t begin, std::int64_t count, const at::Tensor& out) override {
    file_.read(tensor.name, begin, count, out);
  }

 private:
  const SafetensorsFile& file_;
};

std::vector<std::pair<std::string, at::Tensor>> buffers_of(const torch::nn::Module& module) {
  std::vector<std::pair<std::string, at::Tensor>> buffers;
  for (const auto& buffer : module.named_buffers())
    if (buffer.value().defined()) buffers.emplace_back(buffer.key(), buffer.value());
  return buffers;
}

/// The contents of a module's file: parameters in group order, under each of their names, then buffers.
std::vector<SafetensorsSpec> specs_of(const ShardedModule& model, const std::vector<TensorSpec>& tensors) {
  std::vector<SafetensorsSpec> specs;
  for (const TensorSpec& tensor : tensors)
    for (const ModuleUnits::Named& parameter : model.units().parameters())
      if (parameter.first_name == tensor.name) specs.push_back({parameter.name, model.units().type(), tensor.shape});
  for (const auto& [name, buffer] : buffers_of(model.module()))
    specs.push_back({name, buffer.scalar_type(), buffer.sizes().vec()});
  return specs;
}

/// Returns true if SafetensorsFile::read() can convert the tensor to this type.
bool is_read_as(const StoredTensor& stored, at::ScalarType type) {
  return stored.type && (*stored.type == type || (at::isFloatingType(*stored.type) && at::isFloatingType(type)));
}

void check_stored(const SafetensorsFile& file, const std::string& name, const at::Tensor& tensor, const char* what) {
  const StoredTensor* stored = file.find(name);
  if (!stored) throw InputError(file.path() + ": holds no " + name + ", which is a " + what + " of the module");
  if (at::IntArrayRef(stored->shape) != tensor.sizes())
    throw InputError(text(file.path(), ": ", name, " has the shape ", at::IntArrayRef(stored->shape), " there and ",
                          tensor.sizes(), " in the module"));
  if (!is_read_as(*stored, tensor.scalar_type()))
    throw InputError(text(file.path(), ": ", name, " is ", stored->dtype, " there and ", tensor.scalar_type(),
                          " in the module, and only floating types are converted to each other"));
}

void check_file(const SafetensorsFile& file, const torch::nn::Module& module, const ModuleUnits& units) {
  std::set<std::string> known;
  for (const ModuleUnits::Named& parameter : units.parameters()) {
    known.insert(parameter.name);
    if (parameter.name == parameter.first_name) check_stored(file, parameter.name, parameter.tensor, "parameter");
  }
  for (const auto& [name, buffer] : buffers_of(module)) {
    known.insert(name);
    check_stored(file, name, buffer, "buffer");
  }
  for (const StoredTensor& stored : file.tensors())
    if (!known.contains(stored.name))
      throw InputError(file.path() + ": holds " + stored.name + ", which the module does not have");
}

void read_tensor(const SafetensorsFile& file, const std::string& name, const at::Tensor& tensor) {
  const at::NoGradGuard no_grad;
  const at::Tensor values =
      at::empty({tensor.numel()}, tensor.options().device(at::kCPU).memory_format(at::MemoryFormat::Contiguous));
  file.read(name, 0, values.numel(), values);
  write_values(tensor, values.view(tensor.sizes()));
}

/// Allocates memory for a Meta tensor.
void allocate(const at::Tensor& tensor, at::Device device) {
  point_at(tensor, at::empty(tensor.sizes(), at::TensorOptions().dtype(tensor.scalar_type()).device(device)));
}

}  // namespace

void meet(const World& world, Phase phase) { world.impl().ranks->barrier({phase}); }

std::unique_ptr<WeightSource> ShardedModel::Impl::values_of_deferred(const ModuleUnits& units, std::uint64_t seed) {
  if (initial_file) return std::make_unique<FileWeights>(*initial_file);
  auto weights = std::make_unique<DeferredWeights>(*module, units, seed);
  weights->fill_buffers(*module, world.device());
  return weights;
}

void ShardedModel::save(const std::string& path) {
  prepare();
  meet(impl_->world, Phase::save);
  ShardedModule& model = *impl_->sharded;
  Communicator& control = *impl_->world.impl().control;
  std::vector<TensorSpec> tensors;
  for (const auto& group : model.states().groups())
    for (const FlatTensor& tensor : group->layout().tensors()) tensors.push_back(tensor.spec);
  std::unique_ptr<SafetensorsWriter> writer;  // on the main process
  on_first(control, [&] { writer = std::make_unique<SafetensorsWriter>(path, specs_of(model, tensors)); });
  model.for_each_parameter(
      [&](const std::string&, const at::Tensor& value) { on_first(control, [&] { writer->append(value); }); });
  on_first(control, [&] {
    for (const auto& [name, buffer] : buffers_of(model.module()))
      writer->append(buffer.detach().to(at::kCPU).contiguous().view({-1}));
    writer->finish();
  });
}

void ShardedModel::load(const std::string& path) {
  meet(impl_->world, Phase::load);
  Communicator& control = *impl_->world.impl().control;
  torch::nn::Module& module = *impl_->module;
  std::unique_ptr<SafetensorsFile> file;
  all_or_none(control, [&] {
    file = std::make_unique<SafetensorsFile>(path);
    if (impl_->sharded) {
      check_file(*file, module, impl_->sharded->units());
    } else {
      const ModuleUnits units(module, impl_->options.units);
      check_file(*file, module, units);
      for (const ModuleUnits::Named& parameter : units.parameters())
        if (parameter.name == parameter.first_name && !parameter.tensor.is_meta())
          read_tensor(*file, parameter.name, parameter.tensor);
    }
    for (const auto& [name, buffer] : buffers_of(module)) {
      if (buffer.is_meta()) allocate(buffer, impl_->world.device());
      read_tensor(*file, name, buffer);
    }
  });
  if (!impl_->sharded) {
    impl_->initial_file = std::move(file);
    return;
  }
  FileWeights weights(*file);
  impl_->drop_step();
  impl_->sharded->states().restart(weights);
  impl_->sharded->weights_changed();
}

void ShardedModel::save_state(const std::string& folder) {
  impl_->divided("save_state()");
  CheckpointValues none;
  save_state_of({{"", impl_}}, none, impl_->world, folder, "save_state()");
}

std::int64_t ShardedModel::load_state(const std::string& folder) {
  impl_->divided("load_state()");
  CheckpointValues none;
  return load_state_of({{"", impl_}}, none, impl_->world, folder, "load_state()");
}

bool ShardedModel::has_state(const std::string& folder) const { return has_state_in(folder, impl_->world); }

}  // namespace zero
