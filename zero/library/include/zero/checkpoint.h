#pragma once
// Checkpoint: everything a training program needs to continue, in one folder: models with their optimizers, loader
// positions and the program's own values. A saved state is either complete or absent.
//
//   zero::Checkpoint checkpoint("states", world);
//   checkpoint.add("generator", g).add("critic", c).add("batches", loader).add("best", best);
//   if (checkpoint.exists()) checkpoint.load();
//   for (auto epoch = loader.epoch(); epoch < 10; ++epoch) {
//     loader.set_epoch(epoch);
//     for (auto& batch : loader) {   // after load(): the batches that were left
//       ...
//       if (++step % 100 == 0) checkpoint.save();   // after the steps of the batch
//     }
//   }
#include <torch/types.h>

#include <concepts>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include <zero/safetensors.h>
#include <zero/sharded.h>
#include <zero/world.h>

namespace zero {

/// An object that keeps its state as tensors: a loader of zero::shard() or zero::make_data_loader(), or your own class.
template <typename T>
concept HasState = requires(T& thing, const T& same, const NamedTensors& state) {
  { same.state() } -> std::convertible_to<NamedTensors>;
  thing.load_state(state);
};

class Checkpoint {
 public:
  /// `folder`: used for this checkpoint alone. The newest two states are kept (ShardedModel::save_state()).
  Checkpoint(const std::string& folder, const World& world);

  /// Adds a model, with its optimizer if it has one. Use the same name in every run. All overloads throw InputError if
  /// the name is taken, is empty or contains a slash.
  Checkpoint& add(const std::string& name, ShardedModel& model);
  /// Adds values and objects, which must outlive the checkpoint. The main process's values are saved, and every process
  /// loads them. A defined tensor keeps its shape, type and memory; named tensors are replaced.
  Checkpoint& add(const std::string& name, torch::Tensor& value);
  Checkpoint& add(const std::string& name, NamedTensors& values);
  Checkpoint& add(const std::string& name, std::string& value);
  template <typename T>
  requires std::is_arithmetic_v<T> Checkpoint& add(const std::string& name, T& value);
  template <HasState T>
  Checkpoint& add(const std::string& name, T& thing);

  /// Saves everything, with each process's random state. Call it between two steps. Throws InputError in the middle of
  /// a model's step, or if no model was added. Also throws InputError if the folder holds states of other models of
  /// this program, or if another program uses the folder. Collective.
  void save();
  /// Loads the newest state, with any number of processes and any stage. Throws InputError if there is none, or if its
  /// names, model types, shapes or kinds of values differ. Rethrows errors of your load_state(). After an error, models
  /// and values are unchanged. Loaders and your own classes may have loaded already, and a step in progress is
  /// discarded. Collective.
  void load();
  /// True if there is a state to load. Collective.
  bool exists() const;

 private:
  using Read = std::function<NamedTensors()>;
  using Write = std::function<void(const NamedTensors& state)>;
  /// `check`: throws InputError if write() cannot accept the state, so that write() never throws. Empty: write() may
  /// throw.
  void add_part(const std::string& name, Read read, Write check, Write write);
  /// Adds one number, stored as int64 or fp64. Loading throws InputError if the stored value is of another kind or out
  /// of bounds.
  void add_integer(const std::string& name, std::function<std::int64_t()> read, std::function<void(std::int64_t)> write,
                   std::int64_t least, std::int64_t most);
  void add_number(const std::string& name, std::function<double()> read, std::function<void(double)> write);

  struct Impl;
  std::shared_ptr<Impl> impl_;
};

template <typename T>
requires std::is_arithmetic_v<T> Checkpoint& Checkpoint::add(const std::string& name, T& value) {
  if constexpr (std::is_floating_point_v<T>) {
    add_number(
        name, [&value] { return double(value); }, [&value](double stored) { value = T(stored); });
  } else {
    constexpr bool wide = sizeof(T) == sizeof(std::int64_t);  // unsigned numbers keep their bits
    add_integer(
        name, [&value] { return std::int64_t(value); }, [&value](std::int64_t stored) { value = T(stored); },
        wide ? std::numeric_limits<std::int64_t>::min() : std::int64_t(std::numeric_limits<T>::min()),
        wide ? std::numeric_limits<std::int64_t>::max() : std::int64_t(std::numeric_limits<T>::max()));
  }
  return *this;
}

template <HasState T>
Checkpoint& Checkpoint::add(const std::string& name, T& thing) {
  add_part(
      name, [&thing] { return NamedTensors(std::as_const(thing).state()); }, {},
      [&thing](const NamedTensors& state) { thing.load_state(state); });
  return *this;
}

}  // namespace zero
