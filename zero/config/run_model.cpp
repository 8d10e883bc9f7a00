#include "zero/config/run_model.h"

#include <algorithm>
#include <limits>
#include <set>

#include "base/counted.h"
#include "base/error.h"
#include "base/log.h"
#include "models/families/families.h"
#include "models/formats/base_model.h"
#include "models/initial_weights.h"
#include "models/lora/adapted_weights.h"
#include "models/lora/peft_directory.h"
#include "models/text/chat_template.h"
#include "zero/config/config_keys.h"
#include "zero/config/data_files.h"
#include "zero/config/setup.h"

namespace zero {
namespace {

LoraOptions options_of(const LoraSection& section) {
  LoraOptions options;
  options.r = section.r;
  options.alpha = section.lora_alpha;
  options.dropout = section.lora_dropout;
  options.target_modules = section.target_modules;
  options.modules_to_save = section.modules_to_save;
  options.use_rslora = section.use_rslora;
  options.use_dora = section.use_dora;
  options.init = section.init_lora_weights == "gaussian" ? LoraInit::gaussian
                 : section.init_lora_weights == "pissa"  ? LoraInit::pissa
                                                         : LoraInit::kaiming;
  return options;
}

// Returns true if both name the same projections. Either may use name endings, "all-linear", or, as PEFT stores them,
// full names.
bool target_alike(const Config& config, const LoraOptions& given, const LoraOptions& stored) {
  if (given.target_modules == stored.target_modules) return true;
  const Model model = make_model(model_config_of(config));
  std::set<std::string> unmatched;
  const auto projections = targeted_projections(model, given.target_modules, &unmatched);
  return unmatched.empty() && projections == targeted_projections(model, stored.target_modules);
}

// Keys given with lora.adapter must agree with the adapter.
void check_agreement(const Config& config, const LoraOptions& given, const LoraOptions& stored) {
  const auto must_agree = [&](const std::string& key, bool agrees, const Value& adapter) {
    if (config.is_given("lora." + key) && !agrees)
      throw InputError(text(config.where("lora." + key), ": the adapter has ", key, " = ", toml_text(adapter), " (",
                            config.lora->adapter, "/adapter_config.json): remove the key, or name another adapter"));
  };
  must_agree("r", given.r == stored.r, stored.r);
  must_agree("lora_alpha", given.alpha == stored.alpha, stored.alpha);
  must_agree("lora_dropout", given.dropout == stored.dropout, stored.dropout);
  if (config.is_given("lora.target_modules"))
    must_agree("target_modules", target_alike(config, given, stored), stored.target_modules);
  const auto in_any_order = [](const std::vector<std::string>& names) { return std::set(names.begin(), names.end()); };
  must_agree("modules_to_save", in_any_order(given.modules_to_save) == in_any_order(stored.modules_to_save),
             stored.modules_to_save);
  must_agree("use_rslora", given.use_rslora == stored.use_rslora, stored.use_rslora);
  must_agree("use_dora", given.use_dora == stored.use_dora, stored.use_dora);
}

// If the options have an error, the message names the line that set them, or the adapter's file.
LoraOptions add_adapters(Model& model, const LoraOptions& options, const Config& config) {
  try {
    return add_lora(model, options);
  } catch (const InputError& error) {
    const std::string what = error.what(), key = what.substr(0, what.find(':'));
    if (!key.starts_with("lora.")) throw;
    const bool of_adapter = !config.lora->adapter.empty() && !config.is_given(key);
    throw InputError(
        (of_adapter ? config.lora->adapter + "/adapter_config.json: " + key.substr(5) : config.where(key)) +
        what.substr(key.size()));
  }
}

// Returns the largest rank that the weights' dimensions allow in every adapter.
std::int64_t useful_rank(Model& model) {
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (auto& unit : model.units)
    for (const Adapter& adapter : unit->adapters())
      least = std::min({least, unit->parameters()[adapter.a].shape()[1], unit->parameters()[adapter.b].shape()[0]});
  return least;
}

std::shared_ptr<WeightSource> weights_of(const Config& config, const RunModel& run) {
  const auto drawn = std::make_shared<RandomWeights>(run.model, std::uint64_t(config.training.seed));
  std::shared_ptr<WeightSource> base = drawn;
  if (config.model.path)
    base =
        weights_of_model(*config.model.path, config.model.allow_unused ? UnusedTensors::allow : UnusedTensors::refuse);
  if (!run.lora) return base;
  if (run.start) return std::make_shared<AdaptedWeights>(base, run.start);
  return std::make_shared<FreshAdapter>(base, drawn);
}

}  // namespace

std::optional<LoraOptions> lora_options_of(const Config& config) {
  if (!config.lora) return std::nullopt;
  LoraOptions options = options_of(*config.lora);
  if (!config.lora->adapter.empty()) {
    const std::string& folder = config.lora->adapter;
    const LoraOptions stored = stored_options(PeftDirectory(folder).options(), model_config_of(config), folder);
    check_agreement(config, options, stored);
    options = stored;
  }
  options.loraplus_lr_ratio = config.lora->loraplus_lr_ratio;
  options.seed = std::uint64_t(config.training.seed);
  return options;
}

std::shared_ptr<const AdapterContents> start_of(const Config& config, const Model& model) {
  if (!config.lora || config.lora->adapter.empty()) return nullptr;
  const std::string& folder = config.lora->adapter;
  auto start = open_adapter(folder, model);
  for (const std::string& projection : targeted_projections(model, {"all-linear"}))
    if (const std::string& whole = start->place({projection + ".weight", {}}).whole; !whole.empty())
      throw InputError(text(folder, ": \"", whole,
                            "\" is a whole projection, and training takes those from the base alone: merge the adapter "
                            "(zero_export MODEL OUT --adapter ",
                            folder, "), and train a new one over OUT"));
  return start;
}

RunModel make_run_model(const Config& config, const ModelConfig& model, bool with_weights, SlicePlace place) {
  RunModel run;
  run.model = make_model(model);
  run.own = make_model(model, place);
  run.lora = lora_options_of(config);
  run.start = start_of(config, run.model);
  if (run.lora) add_adapters(run.own, *run.lora, config);
  if (run.lora) run.lora = add_adapters(run.model, *run.lora, config);
  if (!with_weights) return run;
  run.weights = weights_of(config, run);
  if (run.lora && run.lora->init == LoraInit::pissa && config.lora->adapter.empty())
    run.weights = run.pissa = std::make_shared<PissaWeights>(run.weights, *run.lora);
  run.weights->check(tensors_of(run.model));
  return run;
}

namespace {

/// Returns a warning if the configuration's chat template replaces the model's own and formats conversations
/// differently; otherwise empty.
std::string template_warning(const Config& config) {
  const std::string& choice = config.data.chat_template;
  if (choice.empty() || !any_holds_examples(config.data.train)) return "";
  try {
    const std::string folder = tokenizer_source_of(config).settings;
    if (!ChatTemplate::jinja_of(folder) || write_alike(ChatTemplate::load(folder), ChatTemplate::load(folder, choice)))
      return "";
    return text(
        config.where("data.chat_template"), ": \"", choice, "\" replaces the chat template of ", folder,
        ", which writes conversations otherwise; leave the key out (data.chat_template = \"\") to train with the "
        "model's own");
  } catch (const InputError&) {  // reported when the data are opened
    return "";
  }
}

/// True if a key is given with another value than its default.
bool is_changed(const Config& config, const std::string& name) {
  if (!config.is_given(name)) return false;
  Config given = config, defaults;
  for (const ConfigKey& key : config_keys())
    if (key.full_name() == name) return read_field(key.field(given)) != read_field(key.field(defaults));
  return true;
}

}  // namespace

std::vector<std::string> config_warnings(const Config& config, RunModel& run) {
  std::vector<std::string> doubts;
  for (const auto& [key, rule] :
       {std::pair("training.max_skipped_steps", "skip"), std::pair("training.max_rollbacks", "rollback")})
    if (is_changed(config, key) && config.training.on_nonfinite != rule)
      doubts.push_back(text(config.where(key), ": has no effect with training.on_nonfinite = \"",
                            config.training.on_nonfinite, "\": it is for \"", rule, "\""));
  if (is_changed(config, "parallel.chunks") && config.parallel.schedule != "interleaved")
    doubts.push_back(config.where("parallel.chunks") + ": has no effect without parallel.schedule = \"interleaved\"");
  for (const char* key : {"parallel.schedule", "parallel.regather"})
    if (is_changed(config, key) && config.parallel.pipeline == 1)
      doubts.push_back(config.where(key) + ": has no effect without parallel.pipeline");
  if (!config.data.validation.empty() && config.training.validation_interval == 0)
    doubts.push_back(text(config.where("training.validation_interval"), ": the run is never validated, and ",
                          toml_text(config.data.validation), " of data.validation is not read"));
  if (config.data.validation_fraction > 0 && config.training.validation_interval == 0)
    doubts.push_back(config.where("training.validation_interval") +
                     ": the run is never validated, and the rows of data.validation_fraction are not used");
  if (config.training.steps && config.metrics.first_traced_step > double(*config.training.steps))
    doubts.push_back(text(config.where("metrics.trace_steps"), ": no step is traced, because the run has ",
                          counted(*config.training.steps, "step")));
  if (std::string warning = template_warning(config); !warning.empty()) doubts.push_back(std::move(warning));
  if (!run.lora) return doubts;
  if (config.model.preset)
    doubts.push_back(
        config.where("model.preset") +
        ": the adapter's base is random weights, which are not saved: nobody can use the adapter without them; "
        "[model] path names a base that others have");
  if (const std::int64_t rank = useful_rank(run.model); run.lora->r > rank)
    doubts.push_back(text(config.where("lora.r"), ": the smallest adapted matrix has a side of ", rank,
                          "; a higher rank costs memory and adds nothing there"));
  return doubts;
}

}  // namespace zero
