#include "zero/plan/layout_choices.h"

#include <algorithm>
#include <string>

#include "models/decoder/decoder.h"

namespace zero {
namespace {

Value integer(std::int64_t value) { return value; }

std::vector<Value> words(std::initializer_list<const char*> names) {
  std::vector<Value> values;
  for (const char* name : names) values.emplace_back(std::string(name));
  return values;
}

std::vector<Value> powers(std::int64_t most) {
  std::vector<Value> values;
  for (std::int64_t value = 1; value <= most; value *= 2) values.push_back(integer(value));
  return values;
}

/// The sizes of an axis: powers of two and other divisors of `of`, up to `most`.
std::vector<Value> degrees(std::int64_t most, std::int64_t of) {
  std::vector<Value> values;
  for (std::int64_t value = 1; value <= std::min(most, of); ++value)
    if (of % value == 0) values.push_back(integer(value));
  return values;
}

/// The sizes of a tensor axis that cut the model evenly.
std::vector<Value> tensor_degrees(const ModelConfig& model, std::int64_t node) {
  std::vector<Value> values = degrees(model.num_key_value_heads, node);
  std::erase_if(values,
                [&](const Value& value) { return !why_not_cut(model, int(std::get<std::int64_t>(value))).empty(); });
  return values;
}

/// All ranks; one node, four nodes, sixteen nodes, ...
std::vector<Value> shard_degrees(const PlanMachine& machine) {
  std::vector<Value> values{integer(0)};
  for (std::int64_t degree = machine.ranks_per_node; degree < machine.ranks(); degree *= 4)
    if (machine.ranks() % degree == 0) values.push_back(integer(degree));
  return values;
}

/// Ranks of a context axis have at least so many tokens of a row.
constexpr std::int64_t least_context_tokens = 128;

}  // namespace

const std::vector<const ConfigKey*>& layout_keys() {
  static const std::vector<const ConfigKey*> keys = [] {
    std::vector<const ConfigKey*> found;
    for (const char* name :
         {"zero.stage", "offload.optimizer", "offload.parameters", "activation_checkpoint.mode",
          "activation_checkpoint.keep", "offload.activations", "zero.shard_degree", "parallel.tensor",
          "parallel.context", "parallel.pipeline", "lora.quantization", "training.local_batch_size"})
      for (const ConfigKey& key : config_keys())
        if (key.full_name() == name) found.push_back(&key);
    return found;
  }();
  return keys;
}

std::vector<LayoutChoice> choices_of(const Config& config, const ModelConfig& model, const PlanMachine& machine,
                                     bool any_batch) {
  const std::int64_t node = machine.ranks_per_node;
  std::vector<LayoutChoice> choices;
  const auto add = [&](const std::string& name, const std::vector<Value>& values) {
    if (config.overridden.contains(name)) return;  // it stays
    for (const ConfigKey* key : layout_keys())
      if (key->full_name() == name) choices.push_back({key, values});
  };
  add("zero.stage", {integer(1), integer(2), integer(3), integer(0)});
  add("offload.optimizer", machine.gpu ? words({"none", "cpu", "nvme"}) : words({"none", "nvme"}));
  add("offload.parameters", machine.gpu ? words({"none", "cpu", "nvme"}) : words({"none", "nvme"}));
  add("activation_checkpoint.mode", words({"none", "attention", "selective", "full"}));
  add("activation_checkpoint.keep", words({"auto", "on"}));
  if (machine.gpu) add("offload.activations", words({"none", "cpu"}));
  if (machine.nodes > 1) add("zero.shard_degree", shard_degrees(machine));
  add("parallel.tensor", tensor_degrees(model, node));
  add("parallel.context",
      degrees(std::clamp<std::int64_t>(config.training.seq_len / least_context_tokens, 1, model.num_attention_heads),
              node));
  if (!machine.gpu)  // a pipeline runs only on CPUs
    add("parallel.pipeline", degrees(std::min<std::int64_t>(16, model.num_hidden_layers), machine.ranks()));
  if (config.lora) add("lora.quantization", words({"none", "int8", "nf4"}));
  if (any_batch)
    add("training.local_batch_size", powers(std::min<std::int64_t>(64, *config.training.global_batch_size)));
  return choices;
}

bool is_sensible(const Config& config) {
  const OffloadConfig& offload = config.offload;
  if (offload.parameters != "none" && (config.zero.stage != 3 || offload.optimizer == "none")) return false;
  if (offload.optimizer == "cpu" && offload.parameters == "nvme") return false;
  if (offload.activations != "none" && config.activation_checkpoint.mode != "full") return false;
  const bool is_asked = config.overridden.contains("zero.shard_degree");
  if (config.zero.stage == 0 && config.zero.shard_degree != 0 && !is_asked) return false;  // stage 0 shards nothing
  return !(config.activation_checkpoint.keep == "on" && config.activation_checkpoint.mode == "full");
}

}  // namespace zero
