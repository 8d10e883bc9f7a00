#include "models/lora/adapter_contents.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/log.h"
#include "models/families/families.h"
#include "models/lora/module_names.h"
#include "models/weight_source.h"

namespace zero {

/// A model's modules with tensors, by their role for an adapter.
struct AdapterModules {
  std::set<std::string> all, adaptable, adapted;
  std::set<std::string> targeted;  // targets without an adapter: embeddings, norms, a head tied to the embedding
};

namespace {

constexpr const char* other_base =
    ": the adapter belongs to another base model, or adapter_config.json to another adapter";

AdapterModules modules_of(const std::vector<TensorSpec>& tensors, const LoraOptions& options, const DecoderNames& names,
                          const std::string& model_type) {
  const std::vector<std::string> targets = expand_targets(options.target_modules, model_type);
  AdapterModules modules;
  for (const TensorSpec& tensor : tensors) {
    const std::string module = module_of(tensor.name);
    modules.all.insert(module);
    if (is_targeted(targets, module)) modules.targeted.insert(module);
    if (tensor.shape.size() != 2 || !(tensor.name.starts_with(names.layers + ".") || module == names.head)) continue;
    modules.adaptable.insert(module);
    if (is_targeted(targets, module) && !is_kept_from_adapters(options.modules_to_save, module))
      modules.adapted.insert(module);
  }
  if (is_targeted(targets, names.head)) modules.targeted.insert(names.head);
  for (const std::string& module : modules.adaptable) modules.targeted.erase(module);
  return modules;
}

std::vector<TensorSpec> without_adapters(const Model& model) {
  std::vector<TensorSpec> tensors = tensors_of(model);
  std::erase_if(tensors, [](const TensorSpec& tensor) { return tensor.name.starts_with(peft_prefix); });
  return tensors;
}

}  // namespace

/// The file's tensors; the model must request each of them.
class AdapterContents::Comparison {
 public:
  Comparison(const PeftDirectory& directory, AdapterModules modules)
      : folder_(directory.folder()), file_(directory.weights()), modules_(std::move(modules)) {}

  const AdapterModules& modules() const { return modules_; }
  [[noreturn]] void refuse(const std::string& what) const { throw InputError(folder_ + ": " + what); }

  /// Rejects keys that no tensor of the model could satisfy. Target names of other families are ignored.
  void refuse_unkept(const LoraOptions& options) const {
    for (const std::string& end : options.modules_to_save) {
      const auto is_within = [&](const std::string& module) { return is_saved_within({end}, module); };
      if (std::none_of(modules_.all.begin(), modules_.all.end(), is_within))
        refuse(text("\"modules_to_save\" of adapter_config.json names \"", end,
                    "\", the end of no module of the model: take it out of the list; or the adapter belongs to another "
                    "base model"));
    }
    for (const std::string& module : modules_.targeted)
      if (!is_kept_from_adapters(options.modules_to_save, module))
        refuse(text("\"target_modules\" of adapter_config.json names ", module,
                    modules_.all.contains(module) ? "" : ", which the model has as one with its embedding",
                    ": only projections and an untied head take adapters here; take it out of the list, or merge the "
                    "adapter in PEFT (merge_and_unload)"));
  }

  /// The name of a tensor that `key` of adapter_config.json requires.
  std::string promised(const std::string& name, const std::vector<std::int64_t>& shape, const char* key) {
    if (!take(name, shape)) missing_.emplace_back(name, key);
    return name;
  }
  /// The name of a tensor that the file may hold in addition, or "".
  std::string beside(const std::string& name, const std::vector<std::int64_t>& shape) {
    const StoredTensor* stored = take(name, shape);
    if (stored) beside_.push_back(*stored);
    return stored ? name : "";
  }

  /// The tensors that beside() found. InputError if a required tensor is missing or a tensor was not requested.
  std::vector<StoredTensor> close() const {
    refuse_missing();
    for (const StoredTensor& stored : file_.tensors())
      if (!taken_.contains(stored.name)) refuse_unpromised(stored.name);
    return beside_;
  }

 private:
  const StoredTensor* take(const std::string& name, const std::vector<std::int64_t>& shape) {
    const StoredTensor* stored = file_.find(name);
    if (!stored) return nullptr;
    if (stored->shape != shape)
      refuse(text("tensor \"", name, "\" has ", shape_text(stored->shape), ", where the model and r want ",
                  shape_text(shape), other_base));
    if (!stored->type || !at::isFloatingType(*stored->type))
      refuse(text("tensor \"", name, "\" is ", stored->dtype, "; F32, F16, BF16 and F64 are read"));
    taken_.insert(name);
    return stored;
  }

  void refuse_missing() const {
    if (missing_.empty()) return;
    const auto& [name, key] = missing_.front();
    const std::vector<StoredTensor>& tensors = file_.tensors();
    const auto other = std::find_if(tensors.begin(), tensors.end(),
                                    [&](const StoredTensor& stored) { return !taken_.contains(stored.name); });
    std::string instead;
    if (tensors.empty()) instead = ", and the file holds no tensor";
    if (other != tensors.end()) instead = ", and the file holds \"" + other->name + "\"";
    refuse(text("tensor \"", name, "\"", missing_.size() == 1 ? " is" : text(" and ", missing_.size() - 1, " more are"),
                " missing, although \"", key, "\" of adapter_config.json asks for them", instead,
                ": save the adapter again where it was trained; or the adapter belongs to another base model"));
  }

  [[noreturn]] void refuse_unpromised(const std::string& name) const {
    const std::string tensor = "tensor \"" + name + "\"", prefix = peft_prefix;
    const std::size_t part = name.find(".lora_");
    const bool is_part = part != std::string::npos && name.starts_with(prefix);
    const std::string module = is_part ? name.substr(prefix.size(), part - prefix.size()) : "";
    if (modules_.adapted.contains(module))
      refuse(tensor +
             " is of a kind that adapter_config.json does not ask for (\"use_dora\", \"lora_bias\", ...): set "
             "the key as it was in training, or take the tensor out of the file");
    if (modules_.adaptable.contains(module))
      refuse(tensor +
             " adapts a module that \"target_modules\" of adapter_config.json does not name, so PEFT leaves it "
             "out: name the module there, or take the tensor out of the file");
    if (modules_.all.contains(module))
      refuse(tensor + " adapts an embedding, which is not done here: merge the adapter in PEFT (merge_and_unload)");
    if (name.starts_with(prefix) && modules_.adapted.contains(module_of(name.substr(prefix.size()))))
      refuse(tensor +
             " would replace the weights of a module with an adapter, and PEFT leaves it out: the name there is "
             "MODULE.base_layer.weight; rename the tensor, or take it out of the file");
    refuse("the model has no place for " + tensor + other_base);
  }

  const std::string folder_;
  const SafetensorsFile& file_;
  const AdapterModules modules_;
  std::set<std::string> taken_;                               // names in the file
  std::vector<std::pair<std::string, const char*>> missing_;  // each with the key that requires it
  std::vector<StoredTensor> beside_;
};

AdapterContents::AdapterContents(std::shared_ptr<const PeftDirectory> directory, const Model& model)
    : directory_(std::move(directory)),
      options_(stored_options(directory_->options(), model.config, directory_->folder())),
      names_(family_of(model.config.model_type).names) {
  const std::vector<TensorSpec> tensors = without_adapters(model);
  Comparison comparison(*directory_, modules_of(tensors, options_, names_, model.config.model_type));
  if (comparison.modules().adapted.empty())
    comparison.refuse(text("\"target_modules\" of adapter_config.json names no projection of the model", other_base));
  comparison.refuse_unkept(options_);
  for (const TensorSpec& tensor : tensors) places_.emplace(tensor.name, place_of(tensor, comparison));
  if (!comparison.modules().all.contains(names_.head))
    for (const TensorSpec& tensor : tensors)
      if (tensor.name == names_.embedding + ".weight") place_tied_head(tensor, comparison);
  beside_ = comparison.close();
}

AdapterContents::Place AdapterContents::place_of(const TensorSpec& tensor, Comparison& comparison) const {
  const std::string module = module_of(tensor.name), prefixed = peft_prefix + module,
                    kind = tensor.name.substr(module.size());
  const bool saved = is_saved_within(options_.modules_to_save, module);
  Place place;
  if (!comparison.modules().adapted.contains(module)) {
    place.whole = saved ? comparison.promised(prefixed + kind, tensor.shape, "modules_to_save")
                        : comparison.beside(prefixed + kind, tensor.shape);
    return place;
  }
  if (saved)
    comparison.refuse("\"target_modules\" and \"modules_to_save\" of adapter_config.json both name " + module +
                      ": take it out of one of them");
  place.whole = comparison.beside(prefixed + ".base_layer" + kind, tensor.shape);
  if (tensor.shape.size() != 2) return place;  // a bias
  const bool turned = is_input_first(tensor);
  if (turned && options_.use_dora)
    comparison.refuse("\"use_dora\" is not supported for weights that are stored [in, out]");
  const std::int64_t out = tensor.shape[turned ? 1 : 0], in = tensor.shape[turned ? 0 : 1];
  place.a = comparison.promised(prefixed + ".lora_A.weight", {options_.r, in}, "target_modules");
  place.b = comparison.promised(prefixed + ".lora_B.weight", {out, options_.r}, "target_modules");
  if (options_.use_dora) place.magnitude = comparison.promised(prefixed + ".lora_magnitude_vector", {out}, "use_dora");
  return place;
}

/// PEFT also writes a tied head under its own name, and loads either name into the one weight.
void AdapterContents::place_tied_head(const TensorSpec& embedding, Comparison& comparison) {
  const std::string head = peft_prefix + names_.head + ".weight";
  Place& place = places_.at(embedding.name);
  if (is_saved_within(options_.modules_to_save, names_.embedding)) {
    comparison.promised(head, embedding.shape, "ensure_weight_tying");
    holds_tied_pair_ = true;
    return;
  }
  const std::string found = comparison.beside(head, embedding.shape);
  if (place.whole.empty())
    place.whole = found;
  else
    holds_tied_pair_ = !found.empty();
}

const AdapterContents::Place& AdapterContents::place(const TensorSpec& tensor) const {
  const auto found = places_.find(tensor.name);
  ZERO_CHECK(found != places_.end(), tensor.name + ": is no tensor of the adapter's model");
  return found->second;
}

bool AdapterContents::is_input_first(const TensorSpec& tensor) const {
  return names_.input_first && tensor.name.starts_with(names_.layers + ".");
}

void AdapterContents::check_values() const {
  if (!holds_tied_pair_) return;
  const std::string prefix = peft_prefix, head = prefix + names_.head + ".weight",
                    embedding = prefix + names_.embedding + ".weight";
  if (!at::equal(file().read(head).to(at::kFloat), file().read(embedding).to(at::kFloat)))
    throw InputError(
        text(folder(), ": \"", head, "\" differs from \"", embedding,
             "\", and the model has them as one (\"tie_word_embeddings\"): merge the adapter in PEFT into a "
             "model whose config.json says false"));
}

std::shared_ptr<const AdapterContents> open_adapter(const std::string& folder, const Model& model) {
  return std::make_shared<AdapterContents>(std::make_shared<PeftDirectory>(folder), model);
}

}  // namespace zero
