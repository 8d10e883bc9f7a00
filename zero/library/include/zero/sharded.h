#pragma once
// Sharded: a torch::nn module whose parameters, gradients and optimizer state are divided over the processes of a world
// (ZeRO stages 0 to 3; Rajbhandari et al. 2020). The module stays as it is: its forward is called as ever, its parameters
// are the same tensor objects.
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

/// What becomes of a module's buffers (running statistics) at every step of the optimizer: all processes take the main
/// one's, as in PyTorch's DistributedDataParallel, or each keeps its own.
enum class Buffers : std::uint8_t { of_main, local };

/// Of bf16 parameters: what the optimizer updates is fp32, 4 bytes more a parameter, or split: the 16 bits that the parameter
/// lacks of it, 2 bytes and exact. A parameter is then the nearest to its master, of two the one away from zero, where with
/// fp32 it is the even one.
enum class Masters : std::uint8_t { fp32, split };

struct ShardOptions {
  int stage = 3;  // 0: nothing divided; 1: optimizer state; 2: gradients too; 3: parameters too
  /// Of parameters, gradients and what travels; the optimizer keeps fp32 beside bf16. None: the parameters' own type.
  std::optional<torch::ScalarType> precision = {};
  /// Names of modules (patterns as fnmatch(3) has them) whose parameters come and go together; empty: each named child. A
  /// child that is a list has a unit for each element, and one whose parameters are mostly in lists (TransformerEncoder) is
  /// parted like the module itself. "layers.*" is each layer with all that is in it; what is to be a unit inside of one has
  /// a pattern of its own.
  std::vector<std::string> units = {};
  int open_groups = 2;  // stage 3: units whose parameters are there at once, at most
  Buffers buffers = Buffers::of_main;
  int shard_degree = 0;  // states are divided among so many processes, groups of which hold the same; 0: among all
  /// Of the numbers that the optimizer keeps of each element. bf16: rounded up or down at random after each step, by draws
  /// that follow from `seed`, step and element, not from processes and stage. Not with Adafactor, AdamW in 8 bits, or SGD
  /// without momentum; not of fp64 parameters; Prodigy's p0 stays fp32.
  torch::ScalarType state_dtype = fp32;
  Masters master_dtype = Masters::fp32;
  std::int64_t seed = 0;
};

/// One micro-batch of a step, or the whole step. While it lives, backward() knows where the micro-batch stands. One without
/// a backward() counts as none.
class Accumulation {
 public:
  Accumulation(const Accumulation&) = delete;
  Accumulation& operator=(const Accumulation&) = delete;
  ~Accumulation();
  /// Whether the optimizer steps after this one.
  bool is_last() const;

 private:
  friend class ShardedModel;
  struct Impl;
  explicit Accumulation(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// While it lives, the parameters that ShardedModel::freeze() found to take gradients take none.
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
  /// False: micro-batches are still to come, or a gradient was not finite and nothing was updated. The first of such steps
  /// in a row is a warning in the log.
  bool taken = false;
  double grad_norm = 0;  // of the whole gradient, before clipping
};

/// A handle on the optimizer of a sharded model, which outlives it: of a model that is gone every call throws.
class ShardedOptimizer {
 public:
  /// The next steps scale the gradient down to this L2 norm where it is longer (torch.nn.utils.clip_grad_norm_); 0: none.
  void clip(double max_norm);
  /// One step at the settings' learning rate, or another, the same on all processes. Rates of groups' own, and Muon's
  /// lr_adamw, keep their ratio to it: at half the settings' rate they are half of theirs. Where the settings' rate is 0
  /// they have none to keep, and stay as they are. Before the last micro-batch of an accumulation it does nothing.
  /// Collective.
  Step step();
  Step step(double lr);
  /// Of the settings: what step(lr) was given counts for that step alone.
  double lr() const;
  std::int64_t steps_taken() const;

  /// What the optimizer keeps of a parameter, by name, in host memory, as it is stored: AdamW's "exp_avg" and "exp_avg_sq"
  /// in the parameter's shape, AdamW's in 8 bits flat, and numbers of the whole tensor (Adafactor's "row_var"). Of the
  /// parameter "": numbers of all parameters together (Prodigy's "d"). InputError where the optimizer has no such
  /// parameter. Collective.
  NamedTensors states(const std::string& parameter) const;
  /// Replaces the states that are named; the others stay. InputError where a name or a number of elements is another than
  /// states() has, or a process passes other values; then nothing has changed. Collective.
  void set_states(const std::string& parameter, const NamedTensors& states);
  /// Bias corrections follow from it. InputError where a process gives another number. Collective.
  void set_steps_taken(std::int64_t steps);

 private:
  friend class ShardedModel;
  explicit ShardedOptimizer(std::weak_ptr<void> model) : model_(std::move(model)) {}
  std::weak_ptr<void> model_;
};

/// What Sharded<Net> is whatever the net. It may be held and destroyed as such.
class ShardedModel {
 public:
  ShardedModel(std::shared_ptr<torch::nn::Module> module, const World& world, const ShardOptions& options);
  virtual ~ShardedModel();
  /// A model that was moved from may be destroyed and assigned to. Its optimizer goes with it.
  ShardedModel(ShardedModel&&) noexcept;
  ShardedModel& operator=(ShardedModel&&) noexcept;

  /// Divides the states, with those of this optimizer. Once, before the first forward and freeze(); without it these
  /// divide the parameters alone, for inference. Collective.
  ShardedOptimizer optimizer(const OptimizerSettings& settings);
  ShardedOptimizer optimizer() const;

  /// The next backward() is one of `micro_batches` of a step, in turn; with `ends` it is the last one, however many there
  /// were (the end of the data). Where the stage allows it, nothing travels before the last one. What is returned is kept
  /// until the end of the micro-batch.
  [[nodiscard]] Accumulation accumulate(int micro_batches, bool ends = false);

  /// Gradients of the loss, a scalar, averaged over the micro-batches of all processes; with weights, averaged by those, as
  /// the sizes of batches that differ: the gradient is then that of the mean over all samples. Weights reach the model's
  /// parameters alone: tensors outside of it get the gradients of the process's own loss. A loss that is not finite is 0
  /// after a backward of weight 0 (the mean over no rows is NaN). All processes and micro-batches of a step have a weight, or
  /// none has. Stages 0 and 1: processes may have more or fewer micro-batches than others, at least one. Collective.
  void backward(const torch::Tensor& loss);
  void backward(const torch::Tensor& loss, double weight);

  /// Visits every parameter, or its gradient until the next step, whole and in the optimizer's precision, in host
  /// memory, under each of its names. Collective.
  using Visit = std::function<void(const std::string& name, const torch::Tensor& value)>;
  void for_each_parameter(const Visit& visit);
  void for_each_gradient(const Visit& visit);

  /// While the result lives, no parameter takes a gradient: another model's backward passes through this one, as a
  /// generator's does through its critic. Not during this model's own backward().
  Frozen freeze();

  /// Parameters and buffers as one safetensors file, written by the main process; read into every process's part, where an
  /// optimizer begins anew. Collective.
  void save(const std::string& path);
  void load(const std::string& path);
  /// Gives parameters and buffers these values; the optimizer goes on with its states. `strict`: all of them, else those
  /// that are named. All processes pass the same, as for_each_parameter() leaves it on each. InputError where a name, a
  /// shape or a kind of type differs, or a process passes other values; then nothing has changed. Collective.
  void load(const NamedTensors& tensors, bool strict = true);
  /// All that training needs to go on: parameters, frozen ones too, buffers, optimizer, the random numbers of each process,
  /// steps done. A folder that is complete or not there at every instant, made with those above it; the newest two are kept.
  /// One of the same step is replaced; those of later steps, of a program that began anew, are set aside as
  /// step-NNNNNNNN.later. load_state() reads the newest into any number of processes and any stage (random numbers into as
  /// many processes alone), and returns the steps done. zero::Checkpoint keeps several models together, and values.
  /// InputError where the folder holds another model's state, or another program works in it. Collective.
  void save_state(const std::string& folder);
  std::int64_t load_state(const std::string& folder);
  /// Whether the main process finds one there, complete as far as names tell. Not there are a folder that does not exist, and
  /// what a run left that was killed before it had written its first state. InputError where another program works in the
  /// folder. Collective.
  bool has_state(const std::string& folder) const;

  /// For people: units with their sizes, and the bytes that a process holds between steps at each stage.
  std::string summary() const;

  const World& world() const;
  /// The stage that is carried out: 0 for a process alone.
  int stage() const;

  struct Impl;

 protected:
  friend class Checkpoint;
  friend class ShardedOptimizer;
  /// Divides the parameters if nothing has.
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

/// `Net`: a module as TORCH_MODULE makes it.
template <typename Net>
class Sharded : public ShardedModel {
 public:
  Sharded(Net net, const World& world, const ShardOptions& options = {})
      : ShardedModel(detail::module_of(net), world, options), net_(std::move(net)) {}

  /// The module itself.
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
