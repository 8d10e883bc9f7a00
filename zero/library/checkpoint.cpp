#include "zero/library/include/zero/checkpoint.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <map>

#include "base/error.h"
#include "base/log.h"
#include "comm/agreement/agreement.h"
#include "zero/checkpoint/manifest.h"
#include "zero/library/state_files.h"
#include "zero/library/world_impl.h"

namespace zero {

struct Checkpoint::Impl {
  struct Part {
    Read read;
    Write check, write;  // as in add_part()
  };

  std::string folder;
  World world;
  std::map<std::string, std::weak_ptr<ShardedModel::Impl>> models;
  std::map<std::string, Part> parts;

  void check_name(const std::string& name) const;
  StateModels all_models(const std::string& call) const;
  /// Returns each part as NAME, with an empty value, and its tensors as NAME/TENSOR.
  CheckpointValues values() const;
  /// The part's tensors in `values`.
  static NamedTensors state_of(const std::string& part, const CheckpointValues& values);
  /// Checks all values; loads the parts that can only check by loading.
  void take(const CheckpointValues& values) const;
  /// Loads the other parts, which take() has checked.
  void set_checked(const CheckpointValues& values) const;
};

namespace {

/// The tensor name of a part with a single tensor.
constexpr const char* sole = "value";

std::string kind_of(const at::Tensor& tensor) { return text(tensor.scalar_type(), " ", tensor.sizes()); }

const at::Tensor& sole_of(const std::string& name, const NamedTensors& state) {
  const auto found = state.find(sole);
  if (state.size() != 1 || found == state.end())
    throw InputError("the state holds several tensors under the name " + name + ", and one value is asked for");
  return found->second;
}

at::Tensor scalar_of(const std::string& name, const NamedTensors& state, at::ScalarType type) {
  const at::Tensor& value = sole_of(name, state);
  if (value.dim() != 0 || value.scalar_type() != type)
    throw InputError(text("the state holds ", kind_of(value), " under the name ", name, ", and a number of type ", type,
                          " is asked for"));
  return value;
}

}  // namespace

void Checkpoint::Impl::check_name(const std::string& name) const {
  if (name.empty() || name.find('/') != std::string::npos)
    throw InputError("checkpoint.add(\"" + name + "\", ...): a name is not empty and has no slash");
  if (models.contains(name) || parts.contains(name))
    throw InputError("checkpoint.add(\"" + name + "\", ...): the name is taken");
}

StateModels Checkpoint::Impl::all_models(const std::string& call) const {
  StateModels all;
  for (const auto& [name, held] : models) {
    const auto model = held.lock();
    if (!model)
      throw InputError(call + ": the model " + name + " is gone: keep it for as long as its checkpoint is used");
    if (&model->world.impl() != &world.impl()) throw InputError(call + ": the model " + name + " is of another world");
    if (!model->sharded) model->divide();
    all.emplace(name, model);
  }
  if (all.empty()) throw InputError(call + ": there is no model in it: checkpoint.add(name, model)");
  return all;
}

CheckpointValues Checkpoint::Impl::values() const {
  CheckpointValues all;
  for (const auto& [name, part] : parts) {
    all[name] = at::empty({0}, at::kByte);
    for (const auto& [tensor, value] : part.read()) {
      if (!value.defined() || !is_state_type(value.scalar_type()))
        throw InputError("checkpoint.save(): " + name + " has a tensor that is " +
                         (value.defined() ? kind_of(value) : "undefined") +
                         ": states hold floating and integer types of up to 64 bits, and bool");
      all[name + "/" + tensor] = value.detach().to(at::kCPU).contiguous();
    }
  }
  return all;
}

NamedTensors Checkpoint::Impl::state_of(const std::string& part, const CheckpointValues& values) {
  NamedTensors state;
  const std::string prefix = part + "/";
  for (auto value = values.lower_bound(prefix); value != values.end() && value->first.starts_with(prefix); ++value)
    state[value->first.substr(prefix.size())] = value->second;
  return state;
}

void Checkpoint::Impl::take(const CheckpointValues& values) const {
  for (const auto& [name, part] : parts)
    if (part.check) part.check(state_of(name, values));
  for (const auto& [name, part] : parts)
    if (!part.check) part.write(state_of(name, values));
}

void Checkpoint::Impl::set_checked(const CheckpointValues& values) const {
  for (const auto& [name, part] : parts)
    if (part.check) part.write(state_of(name, values));
}

Checkpoint::Checkpoint(const std::string& folder, const World& world)
    : impl_(std::make_shared<Impl>(Impl{folder, world, {}, {}})) {}

Checkpoint& Checkpoint::add(const std::string& name, ShardedModel& model) {
  impl_->check_name(name);
  impl_->models.emplace(name, model.impl_);
  return *this;
}

void Checkpoint::add_part(const std::string& name, Read read, Write check, Write write) {
  impl_->check_name(name);
  impl_->parts.emplace(name, Impl::Part{std::move(read), std::move(check), std::move(write)});
}

Checkpoint& Checkpoint::add(const std::string& name, torch::Tensor& value) {
  add_part(
      name,
      [&value] {
        return NamedTensors{{sole, value}};
      },
      [name, &value](const NamedTensors& state) {
        const at::Tensor& stored = sole_of(name, state);
        if (value.defined() && (value.sizes() != stored.sizes() || value.scalar_type() != stored.scalar_type()))
          throw InputError("the state holds " + kind_of(stored) + " under the name " + name +
                           ", and the tensor here is " + kind_of(value));
      },
      [name, &value](const NamedTensors& state) {
        const at::NoGradGuard no_grad;
        const at::Tensor& stored = sole_of(name, state);
        if (value.defined())
          value.copy_(stored);
        else
          value = stored;
      });
  return *this;
}

Checkpoint& Checkpoint::add(const std::string& name, NamedTensors& values) {
  add_part(
      name, [&values] { return values; }, [](const NamedTensors&) {},
      [&values](const NamedTensors& state) { values = state; });
  return *this;
}

Checkpoint& Checkpoint::add(const std::string& name, std::string& value) {
  add_part(
      name,
      [&value] {
        const at::Tensor bytes = at::empty({std::int64_t(value.size())}, at::kByte);
        std::copy(value.begin(), value.end(), bytes.data_ptr<std::uint8_t>());
        return NamedTensors{{sole, bytes}};
      },
      [name, &value](const NamedTensors& state) {
        const at::Tensor& bytes = sole_of(name, state);
        if (bytes.dim() != 1 || bytes.scalar_type() != at::kByte)
          throw InputError("the state holds " + kind_of(bytes) + " under the name " + name +
                           ", and a text is asked for");
      },
      [name, &value](const NamedTensors& state) {
        const at::Tensor& bytes = sole_of(name, state);
        const auto* const first = bytes.const_data_ptr<std::uint8_t>();
        value.assign(first, first + bytes.numel());
      });
  return *this;
}

void Checkpoint::add_integer(const std::string& name, std::function<std::int64_t()> read,
                             std::function<void(std::int64_t)> write, std::int64_t least, std::int64_t most) {
  add_part(
      name,
      [read = std::move(read)] {
        return NamedTensors{{sole, at::scalar_tensor(read(), at::kLong)}};
      },
      [=](const NamedTensors& state) {
        const auto value = scalar_of(name, state, at::kLong).item<std::int64_t>();
        if (value < least || value > most)
          throw InputError(
              text("the state holds ", value, " under the name ", name, ", which the type here cannot hold"));
      },
      [name, write = std::move(write)](const NamedTensors& state) {
        write(scalar_of(name, state, at::kLong).item<std::int64_t>());
      });
}

void Checkpoint::add_number(const std::string& name, std::function<double()> read, std::function<void(double)> write) {
  add_part(
      name,
      [read = std::move(read)] {
        return NamedTensors{{sole, at::scalar_tensor(read(), at::kDouble)}};
      },
      [name](const NamedTensors& state) { (void)scalar_of(name, state, at::kDouble); },
      [name, write = std::move(write)](const NamedTensors& state) {
        write(scalar_of(name, state, at::kDouble).item<double>());
      });
}

void Checkpoint::save() {
  const StateModels models = impl_->all_models("checkpoint.save()");
  CheckpointValues values;
  all_or_none(*impl_->world.impl().control, [&] { values = impl_->values(); });
  save_state_of(models, values, impl_->world, impl_->folder, "checkpoint.save()");
}

void Checkpoint::load() {
  const StateModels models = impl_->all_models("checkpoint.load()");
  CheckpointValues values;
  for (const auto& [name, part] : impl_->parts) values.emplace(name, at::Tensor());
  load_state_of(models, values, impl_->world, impl_->folder, "checkpoint.load()", [&] { impl_->take(values); });
  all_or_none(*impl_->world.impl().control, [&] { impl_->set_checked(values); });
}

bool Checkpoint::exists() const { return has_state_in(impl_->folder, impl_->world); }

}  // namespace zero
