#pragma once
// Sharded: a torch::nn module with parameters, gradients and optimizer state sharded over the processes of a world
// (ZeRO stages 0 to 3; Rajbhandari et al. 2020). The module itself stays the same: its forward is called as usual, and
// its parameters remain the same tensor objects.
//
//   auto world = zero::World::from_environment();
//   zero::Sharded<Net> model(Net(), world, {.stage = 3});
//   auto optimizer = model.optimizer(zero::AdamWOptions{.lr = 3e-4});
//   for (auto& batch : zero::shard(loader, world)) {
//     auto loss = criterion(model->forward(batch.data), batch.target);
//     model.backward(loss);
//     optimizer.step();
//   }
//
// All processes make the same calls in the same order; a process without samples passes empty batches.
#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <zero/optimizers.h>
#include <zero/safetensors.h>
#include <zero/world.h>

namespace zero {

inline constexpr torch::ScalarType fp32 = torch::kFloat;
inline constexpr torch::ScalarType bf16 = torch::kBFloat16;

/// Handling of a module's buffers (running statistics) at every optimizer step. of_main: all processes copy the main
/// one's, as in PyTorch's DistributedDataParallel. local: each keeps its own.
enum class Buffers : std::uint8_t { of_main, local };

/// Master weights of bf16 parameters. fp32: 4 bytes more per parameter, and ties round to even. split: stores only the
/// 16 bits that the parameter lacks, in 2 bytes and exactly. A split master also rounds to nearest, but its ties go
/// away from zero.
enum class Masters : std::uint8_t { fp32, split };

struct ShardOptions {
  int stage = 3;  // 0: nothing sharded; 1: optimizer state; 2: gradients too; 3: parameters too
  /// Type of parameters, gradients and communication; bf16 keeps fp32 masters. None: the parameters' own type.
  std::optional<torch::ScalarType> precision = {};
  /// Units: patterns (fnmatch(3)) for names of modules whose parameters are unsharded and resharded together. Empty:
  /// each named child. A child that is a list gives a unit per element. A child with most parameters in lists
  /// (TransformerEncoder) is split like the module itself. "layers.*" is each layer with its contents. A unit inside
  /// another needs its own pattern.
  std::vector<std::string> units = {};
  int open_groups = 2;  // stage 3: most units that are unsharded at once
  Buffers buffers = Buffers::of_main;
  int shard_degree = 0;  // number of processes that share one copy of the states; 0: all
  /// Type of the numbers that the optimizer keeps per element. bf16: rounded stochastically after each step. The draws
  /// depend on `seed`, step and element, not on processes or stage. Not for Adafactor, 8-bit AdamW, SGD without
  /// momentum or fp64 parameters; Prodigy's p0 stays fp32.
  torch::ScalarType state_dtype = fp32;
  Masters master_dtype = Masters::fp32;
  std::int64_t seed = 0;
};

/// One micro-batch of a step, or the whole step. During its lifetime, backward() knows the micro-batch's position.
/// Without a backward() it does not count.
class Accumulation {
 public:
  Accumulation(const Accumulation&) = delete;
  Accumulation& operator=(const Accumulation&) = delete;
  ~Accumulation();
  /// True if the optimizer steps after this one.
  bool is_last() const;

 private:
  friend class ShardedModel;
  struct Impl;
  explicit Accumulation(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// During its lifetime, the parameters that ShardedModel::freeze() found trainable receive no gradients.
class [[nodiscard]] Frozen {
 public:
  Frozen(Frozen&&) noexcept = default;
  Frozen& operator=(Frozen&&) = delete;
  ~Frozen();

 private:
  friend class ShardedModel;
  explicit Frozen(std::vector<torch::Tensor> thawed);
  std::vector<torch::Tensor> thawed_;
};

struct Step {
  /// False if more micro-batches follow, or if a gradient was not finite and nothing was updated. The first such step
  /// in a row logs a warning.
  bool taken = false;
  double grad_norm = 0;  // of the whole gradient, before clipping
};

/// A handle to the optimizer of a sharded model. It may outlive the model; every call then throws.
class ShardedOptimizer {
 public:
  /// Scales the gradients of the next steps down to this L2 norm (torch.nn.utils.clip_grad_norm_); 0: no clipping.
  void clip(double max_norm);
  /// Takes one step at the settings' learning rate or at `lr`, which must be equal on all processes. Rates
  /// of groups and Muon's lr_adamw keep their ratio: half the settings' rate halves them too. If the
  /// settings' rate is 0, they stay unchanged. Does nothing before the last micro-batch of an accumulation.
  /// Collective.
  Step step();
  Step step(double lr);
  /// The settings' rate; a rate given to step(lr) counts for that step alone.
  double lr() const;
  std::int64_t steps_taken() const;

  /// The optimizer's states of a parameter, by name, in host memory, as stored. Examples: AdamW's "exp_avg" and
  /// "exp_avg_sq" in the parameter's shape, 8-bit AdamW's flat, and per-tensor numbers (Adafactor's "row_var").
  /// Parameter "" gives numbers of all parameters together (Prodigy's "d"). InputError for an unknown parameter.
  /// Collective.
  NamedTensors states(const std::string& parameter) const;
  /// Replaces the named states and keeps the others. InputError if a name or a number of elements does not match
  /// states(), or processes pass different values; nothing has changed then. Collective.
  void set_states(const std::string& parameter, const NamedTensors& states);
  /// Sets the step count, which bias corrections use. InputError if processes pass different numbers. Collective.
  void set_steps_taken(std::int64_t steps);

 private:
  friend class ShardedModel;
  explicit ShardedOptimizer(std::weak_ptr<void> model) : model_(std::move(model)) {}
  std::weak_ptr<void> model_;
};

/// The base of Sharded<Net> for any net. Models can be held and destroyed through it.
class ShardedModel {
 public:
  ShardedModel(std::shared_ptr<torch::nn::Module> module, const World& world, const ShardOptions& options);
  virtual ~ShardedModel();
  /// A moved-from model can be destroyed or assigned to. The optimizer moves along.
  ShardedModel(ShardedModel&&) noexcept;
  ShardedModel& operator=(ShardedModel&&) noexcept;

  /// Shards the states for this optimizer. Call once, before the first forward or freeze(). Without it, those two shard
  /// only the parameters, for inference. Collective.
  ShardedOptimizer optimizer(const OptimizerSettings& settings);
  ShardedOptimizer optimizer() const;

  /// Makes the next backward() one of a step's `micro_batches`; with `ends` it is the last (the end of the data).
  /// Nothing is communicated before the last one if the stage allows it. Keep the result until the micro-batch
  /// ends.
  [[nodiscard]] Accumulation accumulate(int micro_batches, bool ends = false);

  /// Computes gradients of the scalar loss, averaged over the micro-batches of all processes. With weights, such as
  /// batch sizes that differ, the average is weighted: the gradient is that of the mean over all samples. Weights
  /// affect the model's parameters only, not other tensors. With weight 0 a non-finite loss is set to 0 (the mean over
  /// no rows is NaN). Either all micro-batches of a step have a weight or none has. At stages 0 and 1, processes may
  /// differ in their number of micro-batches, at least one. Collective.
  void backward(const torch::Tensor& loss);
  void backward(const torch::Tensor& loss, double weight);

  /// Visits every parameter, or its gradient until the next step, whole, in the optimizer's precision and in host
  /// memory, under each of its names. Collective.
  using Visit = std::function<void(const std::string& name, const torch::Tensor& value)>;
  void for_each_parameter(const Visit& visit);
  void for_each_gradient(const Visit& visit);

  /// During the result's lifetime, no parameter receives gradients. Backward of another model still flows through this
  /// one, as a generator's does through its critic. Do not hold it in this model's own backward().
  Frozen freeze();

  /// Writes parameters and buffers as one safetensors file, from the main process. load() reads each process's part,
  /// and the optimizer starts afresh. Collective.
  void save(const std::string& path);
  void load(const std::string& path);
  /// Sets parameters and buffers; the optimizer keeps its states. `strict`: requires all names. All processes pass the
  /// same tensors, as for_each_parameter() gives them. InputError if a name, shape or kind of type differs, or
  /// processes pass different values; nothing has changed then. Collective.
  void load(const NamedTensors& tensors, bool strict = true);
  /// Saves all that training needs to continue: parameters (also frozen), buffers, optimizer, each process's random
  /// state, step count. The folder and its parents are created; a state is always complete or absent, and the newest
  /// two are kept. Replaces a state of the same step. Later steps of an earlier run are renamed step-NNNNNNNN.later.
  /// load_state() reads the newest with any number of processes and any stage, and returns the step count; random state
  /// needs the same number of processes. For several models or values use zero::Checkpoint. InputError if the folder
  /// holds another model's state or another program uses it. Collective.
  void save_state(const std::string& folder);
  std::int64_t load_state(const std::string& folder);
  /// True if the main process finds a state that is complete by its name. False for a missing folder, and
  /// for one from a run killed before its first state. InputError if another program uses the folder.
  /// Collective.
  bool has_state(const std::string& folder) const;

  /// A table for people: units with their sizes, and the bytes a process holds between steps at each stage.
  std::string summary() const;

  const World& world() const;
  /// The stage in effect: 0 for a single process.
  int stage() const;

  struct Impl;

 protected:
  friend class Checkpoint;
  friend class ShardedOptimizer;
  /// Shards the parameters unless already done.
  void prepare();

 private:
  std::shared_ptr<Impl> impl_;
};

namespace detail {

template <typename Net>
std::shared_ptr<torch::nn::Module> module_of(const Net& net) {
  constexpr bool is_holder = requires { net.ptr(); };
  static_assert(
      is_holder,
      "zero::Sharded<Net> takes a module as TORCH_MODULE(Net) makes it. A struct Net or a std::shared_ptr<Net> "
      "is torch::nn::ModuleHolder<Net>: zero::Sharded<torch::nn::ModuleHolder<Net>> model(std::make_shared<Net>(...), "
      "world)");
  if constexpr (is_holder) return net.ptr();
  return nullptr;
}

}  // namespace detail

/// `Net`: a module made by TORCH_MODULE.
template <typename Net>
class Sharded : public ShardedModel {
 public:
  Sharded(Net net, const World& world, const ShardOptions& options = {})
      : ShardedModel(detail::module_of(net), world, options), net_(std::move(net)) {}

  /// Gives access to the module itself.
  auto* operator->() {
    prepare();
    return net_.get();
  }
  template <typename... Arguments>
  auto operator()(Arguments&&... arguments) {
    prepare();
    return net_(std::forward<Arguments>(arguments)...);
  }
  Net& unwrap() { return net_; }

 private:
  Net net_;
};

}  // namespace zero
