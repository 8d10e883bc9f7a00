#include "zero/train/observers/step_parts.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>
#include <vector>

#include "base/log.h"
#include "comm/object_collectives.h"
#include "zero/train/binding.h"
#include "zero/train/told_numbers.h"

namespace zero {
namespace {

constexpr CallTag parts_tag{Phase::other};

std::vector<double> seconds_of(const ActivityTimes& times, double factor = 1) {
  std::vector<double> seconds;
  for (int a = 0; a < activities; ++a) seconds.push_back(factor * times.seconds(Activity(a)));
  return seconds;
}

/// The time of activities by rank: [ranks][activities].
class Told {
 public:
  explicit Told(at::Tensor numbers) : numbers_(std::move(numbers)) {}

  int ranks() const { return int(numbers_.size(0)); }
  double number(int rank, int which) const { return numbers_[rank][which].item<double>(); }
  double mean(int which) const { return numbers_.select(1, which).mean().item<double>(); }
  double sum(int which) const { return numbers_.select(1, which).sum().item<double>(); }
  /// Without the time in which the rank waits for others.
  double busy(int rank) const {
    double seconds = 0;
    for (int a = 0; a < activities; ++a)
      if (Activity(a) != Activity::ranks) seconds += number(rank, a);
    return seconds;
  }
  int slowest() const {
    int slowest = 0;
    for (int r = 1; r < ranks(); ++r)
      if (busy(r) > busy(slowest)) slowest = r;
    return slowest;
  }

 private:
  at::Tensor numbers_;
};

int ranks_per_node(Communicator& ranks) {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  const std::vector<std::string> names = all_gather_texts(ranks, name.data(), parts_tag);
  return int(std::count(names.begin(), names.end(), names.front()));
}

}  // namespace

void StepParts::Sums::add(const ActivityTimes& of_a_step) {
  ++steps;
  for (std::size_t a = 0; a < std::size_t(activities); ++a) {
    times.nanoseconds[a] += of_a_step.nanoseconds[a];
    times.bytes[a] += of_a_step.bytes[a];
    times.best_rate[a] = std::max(times.best_rate[a], of_a_step.best_rate[a]);
  }
}

StepParts::StepParts(const Config& config, const StepLoop& loop, Engine& engine, std::int64_t micro_batches)
    : config_(config),
      loop_(loop),
      engine_(engine),
      micro_batches_(micro_batches),
      measures_(engine.device().is_cpu() && (config.metrics.step_parts || config.metrics.last_traced_step > 0)) {
  if (measures_ && config.metrics.last_traced_step > 0) trace_.emplace(config.job.output_dir + "/trace", engine.host());
}

StepParts::~StepParts() = default;

void StepParts::before_step(Step& step) {
  if (!measures_) return;
  running_.emplace(clock_);
  clock_.begin(trace_ && config_.metrics.traces(step.index + 1) ? StepTrace::most_slices : 0);
}

void StepParts::figures_known(Step& step) {
  if (!measures_) return;
  clock_.end();
  running_.reset();
  if (!std::exchange(is_first_, false)) sums_.add(clock_.times());
  if (config_.metrics.step_parts && is_logged(step)) tell(step.metrics);
  if (trace_) trace(step.metrics.step);
}

void StepParts::tell(StepMetrics& metrics) {
  const Told told(told_numbers(engine_.host(), seconds_of(clock_.times()), parts_tag));
  std::vector<double> means;
  for (int a = 0; a < activities; ++a) means.push_back(told.mean(a));
  metrics.parts.emplace_back("step_seconds", std::accumulate(means.begin(), means.end(), 0.0));
  for (int a = 0; a < activities; ++a)
    metrics.parts.emplace_back(text("step_", name_of(Activity(a))), means[std::size_t(a)]);
  if (told.ranks() == 1) return;
  const int slowest = told.slowest();
  metrics.parts.emplace_back("slowest_rank", slowest);
  for (int a = 0; a < activities; ++a)
    metrics.parts.emplace_back(text("slowest_", name_of(Activity(a))), told.number(slowest, a));
}

void StepParts::trace(std::int64_t step) {
  if (config_.metrics.traces(step)) trace_->add(step, clock_);
  if (double(step) >= config_.metrics.last_traced_step) trace_.reset();
}

void StepParts::run_ends() {
  if (!measures_ || !config_.metrics.step_parts || sums_.steps == 0) return;
  const auto of = [](const auto& numbers, Activity a) { return double(numbers[std::size_t(a)]); };
  std::vector<double> mine = seconds_of(sums_.times, 1 / double(sums_.steps));
  const double bytes = of(sums_.times.bytes, Activity::gathers) + of(sums_.times.bytes, Activity::sums);
  mine.push_back(bytes / double(sums_.steps));
  mine.push_back(std::max(of(sums_.times.best_rate, Activity::gathers), of(sums_.times.best_rate, Activity::sums)));
  const Told told(told_numbers(engine_.host(), mine, parts_tag));
  StepFigures figures;
  for (int a = 0; a < activities; ++a) figures.seconds[std::size_t(a)] = told.mean(a);
  const double link_seconds = told.sum(int(Activity::gathers)) + told.sum(int(Activity::sums));
  figures.link_rate = link_seconds > 0 ? told.sum(activities) / link_seconds : 0;
  for (int r = 0; r < told.ranks(); ++r)
    figures.best_link_rate = std::max(figures.best_link_rate, told.number(r, activities + 1));
  figures.slowest_rank = told.slowest();
  figures.slowest_busy = told.busy(figures.slowest_rank);
  figures.ranks = told.ranks();
  figures.ranks_per_node = ranks_per_node(engine_.host());
  figures.micro_batches = micro_batches_;
  if (engine_.host().rank() == 0) log_info(what_binds(figures, config_));
}

}  // namespace zero
