#pragma once
// PlanTable: prints planned layouts for people, as JSON for programs, and as a configuration for zero_train.
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "zero/plan/layout_search.h"

namespace zero {

/// "0.0123", "1.90", "12.3", "123", "1234": three digits, or all before the point.
std::string three_digits(double value);

/// A table with one row per layout: memory of the fullest rank, time, tokens per second, the bottleneck, bytes on
/// links. The configuration's own layout is marked, or has a row at the end.
std::string plan_table(const SearchResult& result, const PlanMachine& machine);

/// The parts of a layout's step time: one line per part that takes at least 1 %.
std::string parts_of_step(const StepTime& time);

/// The step time and the memory of a run.
struct MeasuredFigures {
  std::int64_t steps = 0;       // timed steps
  double seconds = 0;           // their median, over all starts; a validated step is not timed
  std::int64_t peak_bytes = 0;  // the largest peak of a rank, as its memory tracker counts; 0: unknown
};

/// One object: machine, sources, and a list of layouts with settings, seconds, parts and bytes. With a run's figures,
/// it also compares them with those of the first layout. "error" is predicted / measured - 1. `largest_batch`, if
/// given, adds each layout's largest local_batch_size. "given" is the configuration's own layout, if it was asked for,
/// and "given_refused" why it is not legal.
std::string plan_json(const SearchResult& result, const PlanMachine& machine, const MeasuredFigures* measured = nullptr,
                      const std::function<std::int64_t(const PlannedLayout&)>& largest_batch = {});

/// Writes the configuration with the layout's settings, in a file that parse_config() reads. Every setting that the
/// planner chose has a comment, and `command`, which starts the run, is at the top. Throws InputError if the file
/// exists.
void write_plan(const std::string& path, const PlannedLayout& layout, const PlanMachine& machine,
                const std::string& command);

}  // namespace zero
