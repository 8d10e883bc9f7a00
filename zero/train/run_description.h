#pragma once
// The description of a run, in the lines of its log and in its checkpoints.
#include <string>

#include "comm/world/job.h"
#include "zero/checkpoint/manifest.h"
#include "zero/data/rows/sample_order.h"
#include "zero/output/run_header.h"
#include "zero/train/run_plan.h"

namespace zero {

/// Returns the description that the run's checkpoints hold.
RunDescription describe_run(const Job& job, const RunPlan& plan, FileCalls& calls);

/// Returns the head of the config.toml of a run of `steps` steps, of which `done` are done. A resumption counts one
/// start more than the former head. One without a step left keeps that head, because it trains nothing. Throws Error if
/// the head cannot be read.
RunHeader header_of(const Job& job, const RunPlan& plan, const TrainArguments& arguments, std::int64_t done,
                    std::int64_t steps, FileCalls& calls);

/// Logs the model, the ranks and the length of a run of `steps` steps. `order`: the order of the training rows.
void log_description(const Job& job, const RunPlan& plan, const Model& model, const SampleOrder& order,
                     std::int64_t steps);
/// If only the model's config.json exists, warns about the files that a real run would also need.
void log_what_is_missing(const RunPlan& plan, const TrainArguments& arguments);
/// Warns about settings that are allowed but rarely intended.
void log_doubts(const RunPlan& plan, RunModel& run);
/// For a resumed run: logs which parts of `position` are dropped, and whether no step is left.
void log_what_is_left(const RunPosition& position, std::int64_t steps, bool can_validate);
/// For a run that has ended: warns if its losses do not look like those of a model that has learnt. Includes
/// `unwritten` lines of its metrics.
void log_doubt_about_losses(const RunPlan& plan, const std::string& unwritten);

}  // namespace zero
