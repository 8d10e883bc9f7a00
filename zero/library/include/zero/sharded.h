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
// All processes make the same calls in the same order. A process without samples passes empty batches.
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
/// process's buffers, as in PyTorch's DistributedDataParallel. local: each process keeps its own.
enum class Buffers : std::uint8_t { of_main, local };

/// Format of the master weights of bf16 parameters. fp32: takes 4 more bytes per parameter, and rounds ties to even.
/// split: stores exactly the 16 bits that the parameter lacks, in 2 bytes. A split master also rounds to nearest, but
/// ties round away from zero.
enum class Masters : std::uint8_t { fp32, split };

struct ShardOptions {
  int stage = 3;  // 0: nothing sharded; 1: optimizer state; 2: gradients too; 3: parameters too
  /// Type of parameters, gradients and communication; bf16 keeps fp32 masters. Empty: the parameters' own type.
  std::optional<torch::ScalarType> precision = {};
  /// Units: fnmatch(3) patterns for the names of modules whose parameters are unsharded and resharded together. Empty:
  /// each named child is a unit. Every element of a child that is a list is a unit. A child with most of its parameters
  /// in lists (TransformerEncoder) is split like the module itself. "layers.*" makes each layer, with its contents, a
  /// unit. A unit inside another unit needs its own pattern.
  std::vector<std::string> units = {};
  int open_groups = 2;  // stage 3: maximum number of units that are unsharded at once
  Buffers buffers = Buffers::of_main;
  int shard_degree = 0;  // number of processes that share one copy of the states; 0: all
  /// Type of the optimizer's states per element. bf16 states are rounded stochastically after each step. The random
  /// draws depend on `seed`, step and element, not on processes or stage. bf16 is not supported for Adafactor, 8-bit
  /// AdamW, SGD without momentum or fp64 parameters. Prodigy's p0 stays fp32.
  torch::ScalarType state_dtype = fp32;
  Masters master_dtype = Masters::fp32;
  std::int64_t seed = 0;
};

/// One micro-batch of a step, or the whole step. While this object lives, backward() knows the micro-batch's position.
/// A micro-batch without a backward() does not count.
class Accumulation {
 public:
  Accumulation(const Accumulation&) = delete;
  Accumulation& operator=(const Accumulation&) = delete;
  ~Accumulation();
  /// True if the optimizer steps after this micro-batch.
  bool is_last() const;

 private:
  friend class ShardedModel;
  struct Impl;
  explicit Accumulation(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// While this object lives, the parameters that ShardedModel::freeze() found trainable receive no gradients.
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
  /// False if more micro-batches follow, or if a gradient was not finite and nothing was updated. The first of
  /// consecutive steps with non-finite gradients logs a warning.
  bool taken = false;
  double grad_norm = 0;  // norm of the whole gradient, before clipping
};

/// A handle to the optimizer of a sharded model. It may outlive the model, but every call then throws.
class ShardedOptimizer {
 public:
  /// Clips the gradients of later steps to this L2 norm (torch.nn.utils.clip_grad_norm_); 0: no clipping.
  void clip(double max_norm);
  /// Takes one step at the settings' learning rate or at `lr`, which must be equal on all processes. The rates of
  /// groups and Muon's lr_adamw scale in proportion: half the settings' rate halves them too. If the settings' rate is
  /// 0, they stay unchanged. Does nothing before the last micro-batch of an accumulation. Collective.
  Step step();
  Step step(double lr);
  /// The settings' rate. A rate passed to step(lr) applies to that step only.
  double lr() const;
  std::int64_t steps_taken() const;

  /// Returns the optimizer's states of a parameter by name, as stored, in host memory. Examples: AdamW's "exp_avg" and
  /// "exp_avg_sq" have the parameter's shape, those of 8-bit AdamW are flat, and Adafactor has per-tensor statistics
  /// ("row_var"). The parameter "" stands for numbers of the whole run (Prodigy's "d"). Throws InputError for an
  /// unknown parameter. Collective.
  NamedTensors states(const std::string& parameter) const;
  /// Replaces the named states and keeps the others. Throws InputError if a name or a number of elements does not match
  /// states(), or if processes pass different values; the states are then unchanged. Collective.
  void set_states(const std::string& parameter, const NamedTensors& states);
  /// Sets the step count that bias corrections use. Throws InputError if processes pass different numbers. Collective.
  void set_steps_taken(std::int64_t steps);

 private:
  friend class ShardedModel;
  explicit ShardedOptimizer(std::weak_ptr<void> model) : model_(std::move(model)) {}
  std::weak_ptr<void> model_;
};

/// The base class of Sharded<Net> for every Net. Models can be held and destroyed through it.
class ShardedModel {
 public:
  ShardedModel(std::shared_ptr<torch::nn::Module> module, const World& world, const ShardOptions& options);
  virtual ~ShardedModel();
  /// A moved-from model can only be destroyed or assigned to. The optimizer moves with the model.
  ShardedModel(ShardedModel&&) noexcept;
  ShardedModel& operator=(ShardedModel&&) noexcept;

  /// Shards the model states for this optimizer. Call it once, before the first forward or freeze(). Without this call,
  /// forward and freeze() shard only the parameters, for inference. Collective.
  ShardedOptimizer optimizer(const OptimizerSettings& settings);
  ShardedOptimizer optimizer() const;

  /// Makes the next backward() one of a step's `micro_batches` micro-batches. If `ends` is true it is the last one, for
  /// the end of the data. If the stage allows it, nothing is communicated before the last micro-batch. Keep the result
  /// until the micro-batch ends.
  [[nodiscard]] Accumulation accumulate(int micro_batches, bool ends = false);

  /// Computes gradients of the scalar loss, averaged over the micro-batches of all processes. If weights are given, the
  /// average is weighted. With batch sizes as weights, the gradient is that of the mean over all samples. Weights
  /// affect the gradients of the model's parameters only. With weight 0, a non-finite loss is set to 0 (the mean over
  /// no rows is NaN). Either all micro-batches of a step have a weight or none has. At stages 0 and 1, processes may
  /// have different numbers of micro-batches, but at least one. Collective.
  void backward(const torch::Tensor& loss);
  void backward(const torch::Tensor& loss, double weight);

  /// Visits every full parameter, or its gradient, in host memory and in the optimizer's precision. A parameter with
  /// several names is visited under each of them. Gradients are available until the next step. Collective.
  using Visit = std::function<void(const std::string& name, const torch::Tensor& value)>;
  void for_each_parameter(const Visit& visit);
  void for_each_gradient(const Visit& visit);

  /// While the result lives, no parameter receives gradients. Another model's backward still flows through this model,
  /// as a generator's does through its critic. The result must not live during this model's own backward().
  Frozen freeze();

  /// save() writes parameters and buffers as one safetensors file, from the main process. load() reads each process's
  /// part and resets the optimizer. Collective.
  void save(const std::string& path);
  void load(const std::string& path);
  /// Sets parameters and buffers; the optimizer keeps its states. `strict`: requires all names. All processes pass the
  /// same tensors, such as those that for_each_parameter() visits. Throws InputError if a name, shape or kind of type
  /// differs, or if processes pass different values; the model is then unchanged. Collective.
  void load(const NamedTensors& tensors, bool strict = true);
  /// save_state() saves all that training needs to continue: parameters (frozen ones too), buffers, optimizer, each
  /// process's random state and the step count. It creates the folder and its parents. A state is always complete or
  /// absent, and the newest two are kept. A state of the same step is replaced. Later steps of an earlier run are
  /// renamed step-NNNNNNNN.later. load_state() reads the newest state, with any number of processes and any stage, and
  /// returns the step count. Random states are restored only with the same number of processes. For several models or
  /// values use zero::Checkpoint. Both throw InputError if the folder holds another model's state or another program
  /// uses it. Collective.
  void save_state(const std::string& folder);
  std::int64_t load_state(const std::string& folder);
  /// Returns true if the folder has a state whose name marks it as complete. Returns false if the folder is missing, or
  /// if a run was killed before it saved its first state. Throws InputError if another program uses the folder.
  /// Collective.
  bool has_state(const std::string& folder) const;

  /// Returns a human-readable table of the units with their sizes, and of the bytes that a process holds between steps
  /// at each stage.
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
