#pragma once
// Checkpoint: what a training program needs to go on, as one folder: models with their optimizers, positions of loaders and
// values of the program's own. It is complete or not there.
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

/// A thing that keeps its state as tensors: loaders of zero::shard() and zero::make_data_loader(), or a class of yours.
template <typename T>
concept HasState = requires(T& thing, const T& same, const NamedTensors& state) {
  { same.state() } -> std::convertible_to<NamedTensors>;
  thing.load_state(state);
};

class Checkpoint {
 public:
  /// `folder`: of this checkpoint alone; the newest two states stay in it (ShardedModel::save_state()).
  Checkpoint(const std::string& folder, const World& world);

  /// A model, with its optimizer where it has one. The name stays the same from program to program. InputError for a name
  /// that is taken, empty or has a slash, as in all that follows.
  Checkpoint& add(const std::string& name, ShardedModel& model);
  /// Values and things, each of which outlives the checkpoint. Saved is what the main process has, and every process loads
  /// that. A tensor that is defined keeps its shape, its type and its memory; named tensors are replaced.
  Checkpoint& add(const std::string& name, torch::Tensor& value);
  Checkpoint& add(const std::string& name, NamedTensors& values);
  Checkpoint& add(const std::string& name, std::string& value);
  template <typename T>
  requires std::is_arithmetic_v<T> Checkpoint& add(const std::string& name, T& value);
  template <HasState T>
  Checkpoint& add(const std::string& name, T& thing);

  /// Saves all of it, with the random numbers of each process, between two steps. InputError in the middle of a step of
  /// one of the models, without a model, and where the folder holds the states of other models of this program, or another
  /// program works in it. Collective.
  void save();
  /// Loads the newest state, into any number of processes and any stage. InputError where there is none, or it holds other
  /// names, models of other types or shapes, or values of other kinds; what a load_state() of yours throws. Models and
  /// values are then as they were. Loaders and classes of yours may have the loaded state, and a step under way is given
  /// up. Collective.
  void load();
  /// Whether there is a state to load. Collective.
  bool exists() const;

 private:
  using Read = std::function<NamedTensors()>;
  using Write = std::function<void(const NamedTensors& state)>;
  /// `check`: throws InputError where write() cannot take the state, which then throws nothing. Empty: write() itself may.
  void add_part(const std::string& name, Read read, Write check, Write write);
  /// One number, as int64 or fp64; throws InputError where the state is none of its kind, or out of these bounds.
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
    constexpr bool wide = sizeof(T) == sizeof(std::int64_t);  // of unsigned ones the bits
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
