#include "zero/plan/step_time.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "zero/config/setup.h"
#include "zero/core/chain.h"
#include "zero/core/pipeline/unit_deal.h"

namespace zero {
namespace {

/// Bytes of optimizer states and masters per element (zero/optim/rules). Passes read them again.
struct RuleBytes {
  double states = 8, passes = 1;
};

RuleBytes bytes_of_rule(const OptimizerConfig& optimizer) {
  const std::string& name = optimizer.name;
  if (name == "adamw8bit") return {2.03, 1};
  if (name == "sgd" || name == "lion" || name == "muon") return {4, 1};
  if (name == "adafactor") return {0.1, 3};
  if (name == "prodigy") return {16, 2};
  return {optimizer.state_dtype == "bf16" ? 4.0 : 8.0, 1};
}

double frozen_element(const Config& config, double element) {
  if (!config.lora) return element;
  if (config.lora->quantization == "nf4") return 0.5 + 4.0 / 64;
  return config.lora->quantization == "int8" ? 34.0 / 32 : element;
}

class Step {
 public:
  Step(const Model& model, const std::vector<UnitWork>& units, const Config& config, const BatchArithmetic& batch,
       PlanMachine& machine)
      : config_(config),
        batch_(batch),
        machine_(machine),
        precision_(precision_of(config, batch)),
        element_(double(c10::elementSize(precision_.compute))),
        units_(units),
        model_(model) {}

  StepTime run() {
    add_micro_batches();
    add_sums_after_backward();
    add_update();
    return time_;
  }

 private:
  int stage() const { return int(config_.zero.stage); }
  double micro_batches() const { return double(batch_.accumulation); }
  RankGroup shard_group() const { return {batch_.mesh.shard * batch_.mesh.context, batch_.mesh.tensor}; }
  RankGroup replica_group() const {
    return {batch_.mesh.replicate, batch_.mesh.tensor * batch_.mesh.context * batch_.mesh.shard};
  }

  LinkCost call(CollectiveCall kind, RankGroup group, double bytes) {
    const LinkCost cost = machine_.links.cost(kind, group, bytes);
    return cost;
  }
  void count(const LinkCost& cost, double times = 1) {
    time_.bytes_in_node += cost.bytes_in_node * times;
    time_.bytes_between += cost.bytes_between * times;
  }

  double wire_bytes(const UnitWork& unit) const {
    const bool keeps = config_.zero.frozen == "keep";
    return (unit.adapted ? 0 : unit.trained * element_) + (keeps ? 0 : unit.frozen * frozen_element(config_, element_));
  }

  LinkCost gather(const UnitWork& unit) { return call(CollectiveCall::all_gather, shard_group(), wire_bytes(unit)); }
  LinkCost reduce(const UnitWork& unit) {
    return unit.adapted ? LinkCost{} : call(CollectiveCall::reduce_scatter, shard_group(), unit.trained * element_);
  }

  /// Seconds of a transfer that the computation beside it does not hide.
  double exposed(double transfer, double computation) const {
    return machine_.gpu ? std::max(0.0, transfer - computation) : transfer;
  }

  /// Reading the unit's shard of weights from where it is offloaded.
  void add_fetch(const UnitWork& unit, double computation) {
    if (config_.offload.parameters == "none") return;
    const double bytes = wire_bytes(unit) / shard_group().size;
    if (config_.offload.parameters == "nvme") {
      time_.disk += exposed(bytes / machine_.disk_read.value, computation);
      time_.bytes_disk += bytes;
    }
    if (machine_.gpu) time_.gathers += exposed(bytes / machine_.host_link.value, computation);
  }

  /// The activations that the axes of a block exchange (docs/parallel.md, "What they cost").
  void add_axes(const UnitWork& unit) {
    const ModelConfig& c = model_.config;
    const double tokens = double(batch_.local_batch_size * config_.row_tokens()) / batch_.mesh.context;
    const double row = tokens * double(c.hidden_size) * element_;
    const RankGroup tensor{batch_.mesh.tensor, 1}, context{batch_.mesh.context, batch_.mesh.tensor};
    LinkCost cost = call(CollectiveCall::all_gather, tensor, row) * unit.axes.gathers;
    cost += call(CollectiveCall::reduce_scatter, tensor, row) * unit.axes.scatters;
    const double heads = double((2 * c.num_attention_heads + 2 * c.num_key_value_heads) * c.head_dim);
    cost += call(CollectiveCall::all_to_all, context, tokens * heads / batch_.mesh.tensor * element_) * unit.axes.swaps;
    time_.axes += cost.seconds;
    count(cost);
  }

  /// The sums and gathers of a tensor axis around the embedding, or around the head.
  void add_ends(bool is_head, bool trained) {
    const double row = double(batch_.local_batch_size * config_.row_tokens()) / batch_.mesh.context *
                       double(model_.config.hidden_size) * element_;
    const RankGroup tensor{batch_.mesh.tensor, 1};
    LinkCost cost = call(CollectiveCall::all_gather, tensor, row) * ((is_head ? 1 : 0) + (trained ? 1 : 0));
    cost += call(CollectiveCall::reduce_scatter, tensor, row);
    time_.axes += cost.seconds;
    count(cost);
  }

  /// One micro-batch through units [begin, end): computation, and the transfers of stage 2 and 3 around it.
  void add_pass(int begin, int end, bool last_of_chain, double times) {
    StepTime before = std::exchange(time_, {});
    for (int i = begin; i < end; ++i) {
      const UnitWork& unit = units_[std::size_t(i)];
      const double forward = unit.forward.sum(), backward = unit.backward.sum();
      time_.compute += unit.forward;
      time_.compute += unit.backward;
      const bool is_block = i > 0 && i + 1 < int(units_.size());
      if (is_block)
        add_axes(unit);
      else if (batch_.mesh.tensor > 1)
        add_ends(i > 0, unit.trained > 0 && !unit.adapted);
      if (stage() == 3) {
        const LinkCost found = gather(unit);
        time_.gathers += exposed(found.seconds, i == begin ? 0 : forward);
        count(found);
        add_fetch(unit, forward);
        const bool again = i > 0 && !(last_of_chain && i + 1 == end);
        if (again) {
          time_.gathers += exposed(found.seconds, backward);
          count(found);
          add_fetch(unit, backward);
        }
      }
      if (stage() >= 2) {
        const LinkCost found = reduce(unit);
        time_.sums += exposed(found.seconds, i == begin ? 0 : backward);
        count(found);
      }
    }
    StepTime pass = std::exchange(time_, before);
    time_.compute += pass.compute * times;
    time_.gathers += pass.gathers * times;
    time_.sums += pass.sums * times;
    time_.axes += pass.axes * times;
    time_.disk += pass.disk * times;
    time_.bytes_in_node += pass.bytes_in_node * times;
    time_.bytes_between += pass.bytes_between * times;
    time_.bytes_disk += pass.bytes_disk * times;
    for (int i = begin; i < end; ++i)
      time_.compute.other +=
          collect(units_[std::size_t(i)], false) + (times - 1) * collect(units_[std::size_t(i)], true);
  }

  /// True if products write the unit's gradients into the flat vector (StatesOptions::write_gradients and
  /// fuse_accumulation).
  bool writes_gradients(const UnitWork& unit) const {
    if (machine_.gpu) return stage() <= 1;
    const bool is_embedding = &unit == &units_.front();
    if (is_embedding || unit.adapted || config_.activation_checkpoint.mlp_tokens > 0) return false;
    const bool one_micro_batch = batch_.accumulation == 1 || config_.job.over_ranks();
    const bool is_sharded = stage() >= 2 && shard_group().size > 1;
    return is_sharded || (precision_.gradient == precision_.compute && one_micro_batch);
  }

  /// Seconds in which the gradients of a micro-batch move from the leaves to the flat vector, or are added to it.
  double collect(const UnitWork& unit, bool adds) {
    const double gradient = double(c10::elementSize(precision_.gradient));
    const double added = adds ? 2 * gradient : 0;  // what earlier micro-batches left is read and written
    const bool writes = writes_gradients(unit);
    if (stage() >= 2)
      return machine_.kernels->stream(unit.trained * ((writes ? 0 : 2 * element_) + added / shard_group().size));
    return writes ? 0 : machine_.kernels->stream(unit.trained * (element_ + (adds ? added : gradient)));
  }

  void add_micro_batches() {
    const int stages = batch_.mesh.pipeline;
    if (stages == 1) {
      add_pass(0, int(units_.size()), true, micro_batches());
      return;
    }
    const EngineOptions options = engine_options_of(config_, batch_);
    const int chunks = options.pipeline.schedule == ScheduleKind::interleaved ? options.pipeline.chunks : 1;
    const Chain chain = chain_of(model_);
    const std::vector<UnitRun> runs = deal_units(costs_of(chain), has_tied_ends(chain), stages, chunks);
    RunCosts costs;
    for (const UnitRun& run : runs) {
      double forward = 0;
      for (int i = run.begin; i < run.end; ++i)
        forward += (units_[std::size_t(i)].forward.sum() + units_[std::size_t(i)].backward.sum()) / 3;
      costs.push_back(std::max(forward, 1e-9));
    }
    const int count_of = int(batch_.accumulation);
    const PipelineTimeline timeline =
        timeline_of(make_schedule(options.pipeline.schedule, runs, costs, stages, count_of), runs, costs, count_of);
    busiest_ = int(std::max_element(timeline.busy.begin(), timeline.busy.end()) - timeline.busy.begin());
    const double busy = timeline.busy[std::size_t(busiest_)];
    for (const UnitRun& run : runs)
      if (run.stage == busiest_) add_pass(run.begin, run.end, run.end == int(units_.size()), micro_batches());
    time_.bubble = timeline.end - busy;
    const double rows =
        double(batch_.local_batch_size * config_.row_tokens()) / (batch_.mesh.context * batch_.mesh.tensor);
    const RankGroup neighbours{2, batch_.mesh.ranks() / stages};
    const LinkCost sent = call(CollectiveCall::send, neighbours, rows * double(model_.config.hidden_size) * element_);
    const double boundaries = double(runs.size()) - 1, each = 2 * micro_batches() * boundaries / stages;
    time_.axes += sent.seconds * each;
    count(sent, each);
    for (const UnitRun& run : runs)
      if (run.stage != busiest_)
        for (int i = run.begin; i < run.end; ++i) absent_.push_back(i);
  }

  bool is_here(int unit) const { return std::find(absent_.begin(), absent_.end(), unit) == absent_.end(); }

  double trained() const {
    double sum = 0;
    for (int i = 0; i < int(units_.size()); ++i)
      if (is_here(i)) sum += units_[std::size_t(i)].trained;
    return sum;
  }
  double adapted() const {
    double sum = 0;
    for (int i = 0; i < int(units_.size()); ++i)
      if (is_here(i) && units_[std::size_t(i)].adapted) sum += units_[std::size_t(i)].trained;
    return sum;
  }

  void add_sums_after_backward() {
    const double gradient = double(c10::elementSize(precision_.gradient));
    const double here = trained(), apart = adapted();
    double last_backward = 0;  // the sums of a step's last micro-batch run beside its backward pass
    for (const UnitWork& unit : units_) last_backward += unit.backward.sum();
    LinkCost cost;
    if (stage() <= 1)
      cost = call(stage() == 0 ? CollectiveCall::all_reduce : CollectiveCall::reduce_scatter, shard_group(),
                  here * gradient);
    else if (apart > 0)
      cost = call(CollectiveCall::reduce_scatter, shard_group(), apart * gradient) * micro_batches();
    const double shard = here * gradient / (stage() == 0 ? 1 : shard_group().size);
    cost += call(CollectiveCall::all_reduce, replica_group(), shard);
    time_.sums += exposed(cost.seconds, 0.5 * last_backward);
    count(cost);
    if (stage() == 1 || stage() == 2) {
      const LinkCost weights = call(CollectiveCall::all_gather, shard_group(), here * element_);
      time_.gathers += weights.seconds;
      count(weights);
    }
    if (stage() == 3 && apart > 0) {
      const LinkCost weights = call(CollectiveCall::all_gather, shard_group(), apart * element_) * micro_batches();
      time_.gathers += weights.seconds;
      count(weights);
    }
  }

  void add_update() {
    const RuleBytes rule = bytes_of_rule(config_.optimizer);
    const double own = trained() / (stage() == 0 ? 1 : shard_group().size);
    const double gradient = double(c10::elementSize(precision_.gradient));
    const double master = precision_.weights_are_master() ? 0 : config_.optimizer.master_dtype == "split" ? 2 : 4;
    const double states = rule.states + master;
    // The gradient's norm reads it, the update reads it again; states and weights are read and written.
    const double bytes = own * (2 * gradient + 2 * states * rule.passes + 2 * element_);
    const std::string& place = config_.offload.optimizer;
    double update = machine_.kernels->stream(bytes);
    if (machine_.gpu && place != "none") {
      update = bytes / machine_.host_memory.value + own * (gradient + element_) / machine_.host_link.value;
    }
    time_.optimizer += update;
    if (place == "nvme") {
      // The disk's transfers and the update of neighbouring chunks run side by side.
      const double disk = own * states * rule.passes / machine_.disk_update.value;
      time_.disk += std::max(0.0, disk - update);
      time_.bytes_disk += 2 * own * states * rule.passes;
    }
    if (config_.offload.parameters == "nvme") {
      time_.disk += own * element_ / machine_.disk_write.value;
      time_.bytes_disk += own * element_;
    }
  }

  const Config& config_;
  const BatchArithmetic& batch_;
  PlanMachine& machine_;
  Precision precision_;
  double element_;
  const std::vector<UnitWork>& units_;
  const Model& model_;
  int busiest_ = 0;          // stage of the pipeline with the most work
  std::vector<int> absent_;  // units of other stages
  StepTime time_;
};

}  // namespace

std::string StepTime::bound() const {
  const std::pair<double, const char*> parts[] = {
      {compute.products, "products"},     {compute.attention, "attention"},
      {compute.other, "other kernels"},   {gathers, "gathers of weights"},
      {sums, "sums of gradients"},        {axes, "activations between ranks"},
      {optimizer, "optimizer"},           {disk, "disk"},
      {bubble, "waiting in the pipeline"}};
  return std::max_element(std::begin(parts), std::end(parts))->second;
}

StepTime simulate_step(const Model& model, const std::vector<UnitWork>& units, const Config& config,
                       const BatchArithmetic& batch, PlanMachine& machine) {
  return Step(model, units, config, batch, machine).run();
}

}  // namespace zero
