#include "models/lora/lora.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>

#include "base/error.h"
#include "base/hash.h"
#include "base/random.h"
#include "models/families/families.h"
#include "models/lora/module_names.h"

namespace zero {

namespace {

/// The names of the projections in a family's blocks, sorted.
std::vector<std::string> projections_of(const std::string& model_type) {
  const DecoderNames& names = family_of(model_type).names;
  std::set<std::string> found;
  const auto add = [&](const std::string& module) { found.insert(module.substr(module.rfind('.') + 1)); };
  for (const auto* modules : {&names.qkv, &names.mlp_input}) std::for_each(modules->begin(), modules->end(), add);
  add(names.attention_output);
  add(names.mlp_output);
  return {found.begin(), found.end()};
}

/// The unit's modules that have a matrix.
std::set<std::string> matrices_of(const Unit& unit) {
  std::set<std::string> modules;
  for (const Parameter& parameter : unit.parameters())
    for (const TensorSpec& part : parameter.parts)
      if (part.shape.size() == 2) modules.insert(module_of(part.name));
  return modules;
}

/// Trains a unit's own parameters in saved modules and freezes the rest. Removes names found from `unmet`.
void choose_trained(Unit& unit, bool block, const std::vector<std::string>& saved, std::set<std::string>& unmet) {
  const std::set<std::string> projections = block ? matrices_of(unit) : std::set<std::string>{};
  for (Parameter& parameter : unit.parameters()) {
    const std::string module = module_of(parameter.parts.front().name);
    parameter.trainable = is_saved(saved, module) && !projections.contains(module);
    if (parameter.trainable) std::erase_if(unmet, [&](const std::string& end) { return module.ends_with(end); });
  }
}

/// True if modules_to_save trains an embedding that is also the head.
bool saves_tied(const ModelConfig& config, const std::vector<std::string>& saved) {
  return config.tie_word_embeddings && is_saved(saved, family_of(config.model_type).names.embedding);
}

std::string with_commas(std::int64_t number) {
  std::string digits = std::to_string(number);
  for (std::int64_t i = std::int64_t(digits.size()) - 3; i > 0; i -= 3) digits.insert(std::size_t(i), ",");
  return digits;
}

/// Adds one part's adapter as parameters of its unit.
void add_adapter(Unit& unit, int parameter, const TensorSpec& part, std::int64_t begin, const LoraOptions& options) {
  const bool input_first = unit.parameters()[parameter].input_first;
  const TensorSpec full = part.full();
  const std::int64_t out = full.shape[input_first ? 1 : 0], in = full.shape[input_first ? 0 : 1];
  // A is split like the weight's inputs, B and the magnitude like its outputs.
  const auto cut_along = [&](TensorSpec spec, int dim, bool inputs) {
    const bool cut = part.cut && (part.cut->dim == (input_first ? 0 : 1)) == inputs;
    return cut ? slice_of(std::move(spec), dim, part.cut->pieces, part.cut->place) : spec;
  };
  const std::string module = peft_prefix + module_of(part.name);
  std::vector<Parameter>& parameters = unit.parameters();
  Adapter adapter{parameter, begin};
  adapter.scale = options.scale();
  adapter.dropout = options.dropout;
  adapter.seed = options.seed * golden_gamma ^ fnv1a(module);
  Parameter a{{cut_along({module + ".lora_A.weight", {options.r, in}}, 1, true)}};
  a.init = options.init == LoraInit::gaussian ? Init::normal : Init::kaiming_uniform;
  a.init_scale = options.init == LoraInit::gaussian ? 1.0 / double(options.r) : 1.0 / std::sqrt(double(in));
  Parameter b{{cut_along({module + ".lora_B.weight", {out, options.r}}, 0, false)}};
  b.init = Init::zeros;
  b.lr_scale = options.loraplus_lr_ratio;
  adapter.a = int(parameters.size());
  parameters.push_back(std::move(a));
  adapter.b = int(parameters.size());
  parameters.push_back(std::move(b));
  if (options.use_dora) {
    Parameter magnitude{{cut_along({module + ".lora_magnitude_vector", {out}}, 0, false)}};
    magnitude.init = Init::ones;  // row lengths of the weight, filled in once it is known
    magnitude.lr_scale = options.loraplus_lr_ratio;
    adapter.magnitude = int(parameters.size());
    parameters.push_back(std::move(magnitude));
  }
  unit.adapters().push_back(adapter);
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

}  // namespace

double LoraOptions::scale() const { return alpha / (use_rslora ? std::sqrt(double(r)) : double(r)); }

std::vector<std::string> expand_targets(const std::vector<std::string>& targets, const std::string& model_type) {
  if (targets == std::vector<std::string>{"all-linear"}) return projections_of(model_type);
  const std::set<std::string> sorted(targets.begin(), targets.end());
  return {sorted.begin(), sorted.end()};
}

std::set<std::string> targeted_projections(const Model& model, const std::vector<std::string>& targets,
                                           std::set<std::string>* unmatched) {
  const std::vector<std::string> all = expand_targets(targets, model.config.model_type);
  std::set<std::string> found, left(all.begin(), all.end());
  for (std::size_t u = 1; u + 1 < model.units.size(); ++u)
    for (const std::string& module : matrices_of(*model.units[u]))
      for (const std::string& target : all)
        if (is_targeted({target}, module)) {
          found.insert(module);
          left.erase(target);
        }
  if (unmatched) *unmatched = std::move(left);
  return found;
}

LoraOptions add_lora(Model& model, const LoraOptions& options) {
  if (const auto& given = options.target_modules;
      given.size() > 1 && std::find(given.begin(), given.end(), "all-linear") != given.end())
    throw InputError("lora.target_modules: \"all-linear\" stands for every projection: give it alone");
  const std::vector<std::string> targets = expand_targets(options.target_modules, model.config.model_type);
  LoraOptions resolved = options;
  resolved.target_modules = targets;
  resolved.fan_in_fan_out = false;
  resolved.ensure_weight_tying = saves_tied(model.config, options.modules_to_save);
  std::set<std::string> unmatched(targets.begin(), targets.end()),
      unsaved(options.modules_to_save.begin(), options.modules_to_save.end());
  for (std::size_t u = 0; u < model.units.size(); ++u) {
    Unit& unit = *model.units[u];
    const bool block = u > 0 && u + 1 < model.units.size();
    choose_trained(unit, block, options.modules_to_save, unsaved);
    const int base = block ? int(unit.parameters().size()) : 0;
    for (int p = 0; p < base; ++p) {
      std::int64_t begin = 0;
      const std::vector<TensorSpec> parts = unit.parameters()[p].parts;
      for (const TensorSpec& part : parts) {
        const std::string module = module_of(part.name);
        for (const std::string& target : targets) {
          if (part.shape.size() != 2 || !is_targeted({target}, module)) continue;
          unmatched.erase(target);
          resolved.fan_in_fan_out |= unit.parameters()[p].input_first;
          add_adapter(unit, p, part, begin, options);
          break;
        }
        begin += part.shape[0];
      }
    }
  }
  if (resolved.fan_in_fan_out && (options.use_dora || options.init == LoraInit::pissa))
    throw InputError(std::string(options.use_dora ? "lora.use_dora" : "lora.init_lora_weights") +
                     ": is not done for weights that are stored [in, out], as those of model_type \"" +
                     model.config.model_type + "\"; use a plain adapter");
  if (!unmatched.empty())
    throw InputError("lora.target_modules: \"" + *unmatched.begin() +
                     "\" matches no projection of the model's blocks; there are " +
                     joined(projections_of(model.config.model_type)) + ", or \"all-linear\" for all of them");
  if (!unsaved.empty()) {
    const DecoderNames& names = family_of(model.config.model_type).names;
    throw InputError("lora.modules_to_save: \"" + *unsaved.begin() +
                     "\" is the end of no module that can be trained whole, which are " + names.embedding + ", " +
                     (model.config.tie_word_embeddings ? "" : names.head + ", ") + names.final_norm +
                     " and the norms of the blocks; projections take adapters by target_modules" +
                     (model.config.tie_word_embeddings ? ", and the head is the embedding" : ""));
  }
  return resolved;
}

LoraOptions stored_options(const LoraOptions& stored, const ModelConfig& model, const std::string& folder) {
  if (!model.tie_word_embeddings) return stored;
  const DecoderNames& names = family_of(model.model_type).names;
  const bool head = is_saved(stored.modules_to_save, names.head);
  if (!head && !saves_tied(model, stored.modules_to_save)) return stored;
  if (!stored.ensure_weight_tying)
    throw InputError(
        folder +
        "/adapter_config.json: \"modules_to_save\" holds the embedding or the head, which the model has as one "
        "(\"tie_word_embeddings\"), without \"ensure_weight_tying\": PEFT trained the one and left the other as it was. "
        "Train with ensure_weight_tying=True there, or merge the adapter in PEFT into a model whose config.json says "
        "\"tie_word_embeddings\": false");
  LoraOptions meant = stored;
  std::erase_if(meant.modules_to_save, [&](const std::string& end) { return names.head.ends_with(end); });
  if (!saves_tied(model, meant.modules_to_save)) meant.modules_to_save.push_back(names.embedding);
  return meant;
}

std::string trainable_line(const Model& model) {
  const std::int64_t trainable = model.trainable_numel(), all = model.numel();
  char share[32];
  std::snprintf(share, sizeof share, "%.4f", 100.0 * double(trainable) / double(all));
  return "trainable params: " + with_commas(trainable) + " || all params: " + with_commas(all) +
         " || trainable%: " + share;
}

}  // namespace zero
