#include "zero/train/run_plan.h"

#include <utility>

#include "base/files/lookup.h"
#include "models/formats/base_model.h"
#include "zero/config/config_rules.h"
#include "zero/config/mistakes.h"
#include "zero/config/model_paths.h"
#include "zero/config/setup.h"
#include "zero/estimate/legal_layout.h"
#include "zero/train/result/save_result.h"
#include "zero/train/settings_difference.h"

namespace zero {

bool RunPlan::lacks_weights(const TrainArguments& arguments) const {
  return arguments.dry_run && config.model.path && !holds_weights(*config.model.path);
}

std::vector<ReadPath> reads_of(const RunPlan& plan, const TrainArguments& arguments) {
  std::vector<ReadPath> reads = read_paths_of(plan.config);
  if (arguments.resume && is_same_place(plan.config.source, plan.config.job.output_dir + "/config.toml"))
    std::erase_if(reads, [&](const ReadPath& read) { return read.name == "the configuration"; });
  return reads;
}

std::vector<std::string> words_of(const TrainArguments& arguments) {
  std::vector<std::string> words = arguments.accepted_changes;
  for (const auto& [given, word] : {std::pair{arguments.overwrite, "--overwrite"},
                                    {arguments.resume, "--resume"},
                                    {arguments.checkpoint_first, "--checkpoint-first"},
                                    {arguments.dry_run, "--dry-run"},
                                    {arguments.preview.examples > 0, "--preview"}})
    if (given) words.emplace_back(word);
  return words;
}

namespace {

/// The examples of a preview depend on no layout. Returns the one rank that shows them.
int without_layout(Config& config) {
  config.parallel = {};
  config.zero.shard_degree = 0;
  return 1;
}

/// A resumed run keeps the batch that followed from its ranks, whatever the ranks are now. The run's own config.toml
/// has it.
void keep_batch(Config& config) {
  const std::string own = config.job.output_dir + "/config.toml";
  if (config.training.global_batch_size || is_same_place(config.source, own) || !is_file(own)) return;
  const Config run = load_config(own, {}, Contradictions::allowed);
  if (!run.training.global_batch_size) return;
  config.training.global_batch_size = run.training.global_batch_size;
  config.origin["training.global_batch_size"] = run.where("training.global_batch_size");
}

}  // namespace

RunPlan make_plan(const TrainArguments& arguments, int ranks, const ChooseDevice& choose) {
  check_accepted(arguments.accepted_changes);
  RunPlan plan;
  plan.config = load_config(arguments.config, arguments.overrides, Contradictions::allowed);
  if (arguments.preview.examples > 0) ranks = without_layout(plan.config);
  if (plan.config.lora) plan.config.lora->adapter = adapter_of(plan.config.lora->adapter);
  if (arguments.resume) keep_batch(plan.config);
  const auto judge = [&] {
    if (!plan.config.model.preset && !plan.config.model.path) return LayoutVerdict();
    const LayoutJob job{.ranks = ranks,
                        .on_gpu = choose(plan.config).is_cuda(),
                        .resumed = arguments.resume,
                        .least_ranks = arguments.target.ranks_per_node,
                        .ranks_option = arguments.dry_run ? "--ranks" : ""};
    return judge_layout(plan.config, model_config_of(plan.config), job);
  };
  check_layout([&] { check_contradictions(plan.config); }, judge);
  const bool here = !arguments.target.named();  // another machine may have other files
  plan.former = arguments.resume      ? FormerRun::resumed
                : arguments.overwrite ? FormerRun::overwritten
                                      : FormerRun::refused;
  Mistakes mistakes;
  mistakes.allow([&] { check_layout([&] { validate_for(plan.config, ranks); }, judge); });
  const FileNeed wanted = arguments.dry_run ? FileNeed::estimate : FileNeed::run;
  if (here) mistakes.allow([&] { check_files(plan.config, wanted); });
  // If there is no other mistake, this is checked later, under the lock.
  if (!mistakes.none() && !arguments.dry_run && arguments.preview.examples == 0)
    mistakes.allow([&] {
      FileCalls calls;
      check_output_dir(plan.config.job.output_dir, plan.former, reads_of(plan, arguments), calls);
    });
  mistakes.tell();
  plan.batch = BatchArithmetic::of(plan.config, ranks);
  plan.config.training.global_batch_size = plan.batch.global_batch_size;  // records show the value in use
  plan.model = model_config_of(plan.config);
  plan.config.checkpoint.export_dtype = export_dtype_of(plan.config);
  check_layout([&] { validate_for_model(plan.config, plan.model); }, judge);
  plan.device = choose(plan.config);
  if (plan.device.is_cuda()) check_layout([&] { validate_for_gpu(plan.config); }, judge);
  return plan;
}

RunModel open_model(RunPlan& plan, const TrainArguments& arguments, int rank) {
  const MeshShape& mesh = plan.batch.mesh;
  const bool with_weights = arguments.preview.examples == 0 && !plan.lacks_weights(arguments);
  RunModel run =
      make_run_model(plan.config, plan.model, with_weights, {mesh.tensor, mesh.index(rank, MeshAxis::tensor)});
  if (arguments.target.named() || plan.lacks_weights(arguments)) return run;
  plan.tokenizer = tokenizer_of(plan.config, plan.model);
  plan.samples = sample_prompts_of(plan.config, plan.model, plan.tokenizer);
  check_result(plan.config, plan.model);
  return run;
}

}  // namespace zero
