#pragma once
// LayoutSearch: the legal layouts of a configuration that fit a machine, fastest first.
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/model_config.h"
#include "zero/config/config_keys.h"
#include "zero/config/run_model.h"
#include "zero/estimate/memory_estimate.h"
#include "zero/plan/layout_choices.h"
#include "zero/plan/plan_machine.h"
#include "zero/plan/step_time.h"

namespace zero {

/// Values of the keys that the search may change.
using LayoutSettings = std::vector<std::pair<const ConfigKey*, Value>>;

struct PlannedLayout {
  LayoutSettings settings;  // all searched keys
  Config config;
  BatchArithmetic batch;
  StepTime time;
  MemoryEstimate memory;

  /// Bytes of a rank where memory is short: on the GPU, or in the host's memory.
  std::int64_t rank_bytes(const PlanMachine& machine) const {
    return machine.gpu ? memory.plan.peak() : memory.rank_peak;
  }
  double tokens() const { return double(batch.global_batch_size * config.row_tokens()); }
  double tokens_per_second() const { return tokens() / time.seconds(); }
  /// "stage 3, shard degree 8, tensor 2, ..."; parts with their default are omitted.
  std::string describe() const;
  /// True if both have one row in a table: the same settings, and the same micro-batch.
  bool is_same(const PlannedLayout& other) const;
};

struct SearchOptions {
  int best = 5;              // layouts to find
  bool only_given = false;   // examines only the configuration's own layout
  bool any_batch = false;    // the micro-batch is part of the search
  bool shows_given = false;  // also predicts the configuration's own layout
};

struct SearchResult {
  std::vector<PlannedLayout> best;  // fastest first; layouts that differ only in what they recompute or keep, or in the
                                    // micro-batch, appear once
  int possible = 0;                 // layouts whose time was predicted
  int illegal = 0, too_large = 0;   // of those that were examined further
  std::optional<PlannedLayout> given;  // the configuration's own layout
  std::string why_not_given;           // why it is not legal on this machine; empty if it is
};

class LayoutSearch {
 public:
  /// All arguments must outlive the search. `config` has a global batch size.
  LayoutSearch(const Config& config, const ModelConfig& model, PlanMachine& machine)
      : config_(config), model_(model), machine_(machine) {}

  /// Layouts are sorted by predicted time; of equally fast ones, the smaller comes first. From the fastest on,
  /// why_illegal() and estimate_stage() judge each layout, until enough layouts fit. Throws InputError with the reason
  /// if no layout is legal.
  SearchResult find(const SearchOptions& options);
  /// The largest local_batch_size that fits, with one micro-batch per step; a pipeline keeps its micro-batches. 0 if
  /// none fits.
  std::int64_t largest_batch(const PlannedLayout& layout);

 private:
  struct Candidate {
    LayoutSettings settings;
    StepTime time;
  };
  struct OwnModel {
    RunModel run;
    std::unique_ptr<MemoryPlanner> planner;
  };
  class Walk;  // through all choices

  Config config_with(const LayoutSettings& settings) const;
  OwnModel& model_for(const Config& config, const BatchArithmetic& batch);
  StepTime time_of(const Config& config, const BatchArithmetic& batch, bool keeps_inputs);
  bool assumes_kept(const Config& config) const;
  bool may_fit(const Config& config, const BatchArithmetic& batch);
  MemoryEstimate memory_of(const Config& config, const BatchArithmetic& batch);
  /// Throws InputError if the configuration's own layout is not legal on this machine.
  PlannedLayout given_layout();
  void add_given(SearchResult& result);
  bool is_as_fast(const Candidate& candidate, const PlannedLayout& found) const;
  std::vector<Candidate> candidates(const SearchOptions& options);
  /// True if the base is quantized otherwise than in the configuration. That changes the result.
  bool changes_base(const LayoutSettings& settings) const;
  /// The fastest comes first, but layouts that change the base follow all others.
  void sort_by_rank(std::vector<Candidate>& layouts) const;
  void sort_by_rank(std::vector<PlannedLayout>& layouts) const;
  [[noreturn]] void refuse_all(const SearchOptions& options) const;

  const Config& config_;
  const ModelConfig& model_;
  PlanMachine& machine_;
  std::map<std::pair<int, std::string>, OwnModel> models_;  // by the tensor axis and the base's type
  std::map<std::string, std::vector<UnitWork>> works_;      // by the settings that change a micro-batch
  std::string why_none_;                                    // why the last illegal layout is illegal
};

}  // namespace zero
