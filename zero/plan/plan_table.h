#pragma once
// PlanTable: prints planned layouts for people, as JSON for programs, and as a configuration for zero_train.
#include <string>
#include <vector>

#include "zero/plan/layout_search.h"

namespace zero {

/// A table with one row per layout: memory of the fullest rank, time, tokens per second, the bottleneck, bytes on
/// links.
std::string plan_table(const std::vector<PlannedLayout>& layouts, const PlanMachine& machine);

/// The parts of a layout's step time: one line per part that takes at least 1 %.
std::string parts_of_step(const StepTime& time);

/// One object: machine, sources, and a list of layouts with settings, seconds, parts and bytes.
std::string plan_json(const SearchResult& result, const PlanMachine& machine);

/// Writes the configuration with the layout's settings, in a file that parse_config() reads. Every setting that the
/// planner chose has a comment. Throws InputError if the file exists.
void write_plan(const std::string& path, const PlannedLayout& layout, const PlanMachine& machine);

/// The command that starts the run.
std::string command_of(const std::string& path, const PlanMachine& machine);

}  // namespace zero
