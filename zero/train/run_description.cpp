#include "zero/train/run_description.h"

#include <ATen/Parallel.h>

#include <filesystem>
#include <iomanip>

#include "base/counted.h"
#include "base/files/file.h"
#include "base/files/lookup.h"
#include "base/files/past_refusal.h"
#include "base/log.h"
#include "base/process/process_facts.h"
#include "models/families/config_json.h"
#include "zero/config/optimizer_settings.h"
#include "zero/config/setup.h"
#include "zero/config/source_files.h"
#include "zero/output/run_mark.h"
#include "zero/train/loss_curve.h"
#include "zero/train/resume_settings.h"

namespace zero {
namespace {

std::string shares_of(const DropoutShares& dropout) {
  return text("embedding ", dropout.embedding, ", attention ", dropout.attention, ", residual ", dropout.residual);
}

void log_dropout(const RunPlan& plan) {
  const DropoutShares &own = plan.model.dropout, &trained = plan.model.trained_dropout();
  if (!own.any() && !trained.any()) return;
  log_info("dropout in training: ", shares_of(trained),
           own == trained ? "" : text("; config.json of the model: ", shares_of(own)));
}

/// Says how often a run sees the rows of each source, and warns of a step that sees some twice.
void log_use(const RunPlan& plan, const std::vector<SampleOrder::SourceUse>& uses) {
  const std::vector<double>& weights = plan.config.data.weights;
  for (std::size_t i = 0; i < uses.size(); ++i) {
    const SampleOrder::SourceUse& use = uses[i];
    const std::string file = weights.empty() ? "" : plan.config.data.train[i];
    if (!weights.empty())
      log_info(file, ": ", std::fixed, std::setprecision(use.share < 0.1 ? 2 : 1), 100 * use.share,
               " % of the sequences, ", std::setprecision(use.epochs < 10 ? 2 : 0), use.epochs, " epochs of its ",
               use.rows);
    const double taken = use.share * double(plan.batch.global_batch_size), passes = taken / double(use.rows);
    if (passes > 1)
      log_warning("a step of ", plan.batch.global_batch_size, " sequences passes over the ", use.rows, " of ",
                  weights.empty() ? "the data" : file, " ", std::fixed, std::setprecision(1), passes,
                  " times: lower the global batch", weights.empty() ? "" : " or the weight", ", or give more data");
  }
}

}  // namespace

RunDescription describe_run(const Job& job, const RunPlan& plan, FileCalls& calls) {
  RunDescription run;
  run.ranks = job.size();
  run.stage = int(plan.config.zero.stage);
  run.threads = at::get_num_threads();
  run.processor = processor_name();
  run.settings = resume_settings(plan.config, plan.batch, plan.model, job.node_cores());
  run.configuration = resolved_toml(plan.config);
  run.directory = std::filesystem::current_path().string();
  run.model_config = format_model_config(plan.model, "float32");
  run.sources = source_marks(source_files_of(plan.config));
  run.id = plan.former == FormerRun::resumed ? run_id_of(plan.config.job.output_dir, calls) : new_run_id();
  return run;
}

RunHeader header_of(const Job& job, const RunPlan& plan, const TrainArguments& arguments, std::int64_t done,
                    std::int64_t steps, FileCalls& calls) {
  RunHeader header{arguments.version, job.size(), 1};
  const std::string former = plan.config.job.output_dir + "/config.toml";
  if (plan.former != FormerRun::resumed) return header;
  past_refusal([&] {
    if (facts_of(former, calls).kind == FileFacts::Kind::absent) return;
    const File file = File::open(former, calls);
    std::string head(300, '\0');
    head.resize(std::size_t(file.read_up_to(head.data(), std::int64_t(head.size()), 0)));
    const RunHeader before = run_header_of(head);
    header.start = before.start + 1;
    header.steps_before = done;
    if (done >= steps && before.ranks > 0) header = before;
  });
  return header;
}

void log_description(const Job& job, const RunPlan& plan, const Model& model, const SampleOrder& order,
                     std::int64_t steps) {
  log_info("model: ", counted(model.numel(), "parameter"), " in ", counted(std::int64_t(model.units.size()), "unit"),
           ", ", plan.config.training.precision);
  log_dropout(plan);
  log_info("stage ", plan.config.zero.stage, ": ", ShardPlan::for_stage(int(plan.config.zero.stage)).describe());
  if (const MeshShape& mesh = plan.batch.mesh; mesh.size(axes::rows) < mesh.ranks())
    log_info("mesh: ", mesh.describe());
  log_info(counted(job.size(), "rank"), " on ", counted(job.nodes(), "node"), ", ",
           counted(at::get_num_threads(), "thread"), " each; ", plan.batch.describe());
  const std::int64_t rows = order.options().rows;
  const double epochs = order.epochs_after(steps);
  log_info(counted(steps, "step"), ", ", std::fixed, std::setprecision(epochs < 10 ? 2 : 0), epochs, " epochs of ",
           counted(rows, "sequence"));
  log_use(plan, order.use_after(steps));
}

void log_what_is_missing(const RunPlan& plan, const TrainArguments& arguments) {
  if (!plan.lacks_weights(arguments)) return;
  const std::string where = plan.config.where("model.path");
  if (!arguments.target.named())
    log_warning(where, ": the model's weights are not there; its config.json is enough for this estimate");
}

void log_doubts(const RunPlan& plan, RunModel& run) {
  const std::int64_t stages = plan.batch.mesh.pipeline, micro_batches = plan.batch.accumulation;
  if (micro_batches < stages)
    log_warning(plan.config.where("parallel.pipeline"), ": its ", stages,
                " stages wait for each other most of the time, ", "since a step has only ", micro_batches,
                micro_batches == 1 ? " micro-batch" : " micro-batches",
                ": raise training.global_batch_size, or lower local_batch_size");
  for (const std::string& doubt : config_warnings(plan.config, run)) log_warning(doubt);
}

void log_what_is_left(const RunPosition& position, std::int64_t steps, bool can_validate) {
  const bool owes = !position.owed_validation.empty();
  if (owes && !can_validate)
    log_warning("the run was stopped before the validation of step ", position.steps,
                ", which is left out: training.validation_interval is 0 now");
  if (position.steps == steps)
    log_info(
        steps == 1 ? "the one step was" : text("all ", steps, " steps were"), " done: ",
        owes && can_validate ? "the last one's validation and the result follow" : "only the result is written anew");
}

void log_doubt_about_losses(const RunPlan& plan, const std::string& unwritten) {
  const LoggedCurve curve = logged_curve(plan.config.job.output_dir + "/metrics.jsonl", unwritten);
  const std::string rates = keys_of_rates(plan.config.optimizer);
  std::string doubt = doubt_about_losses(curve.losses, plan.model.vocab_size, rates);
  if (doubt.empty()) doubt = doubt_about_norms(curve.norms, rates);
  if (!doubt.empty()) log_warning(doubt);
}

}  // namespace zero
