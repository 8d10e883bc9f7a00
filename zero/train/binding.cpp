#include "zero/train/binding.h"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <numeric>
#include <vector>

#include "base/log.h"

namespace zero {
namespace {

bool always(const StepFigures&, const Config&) { return true; }

std::int64_t degree(const StepFigures& figures, const Config& config) {
  const auto axes = config.parallel.tensor * config.parallel.context * config.parallel.pipeline;
  return config.zero.shard_degree > 0 ? config.zero.shard_degree : figures.ranks / std::max<std::int64_t>(1, axes);
}

bool splits_layers(const StepFigures&, const Config& config) {
  return config.parallel.tensor > 1 || config.parallel.context > 1;
}

/// States are shared by ranks of several nodes, and the ranks of one node could share them.
bool shares_between_nodes(const StepFigures& figures, const Config& config) {
  return config.zero.stage > 0 && config.parallel.pipeline == 1 && !splits_layers(figures, config) &&
         figures.ranks_per_node > 1 && figures.ranks_per_node < figures.ranks &&
         figures.ranks % figures.ranks_per_node == 0 && degree(figures, config) > figures.ranks_per_node;
}

std::string degree_of_a_node(const StepFigures& figures, const Config&) {
  return text("zero.shard_degree = ", figures.ranks_per_node,
              " would keep gathers and most sums inside a node, but each rank would need more memory");
}

std::string fewer_slices(const StepFigures&, const Config&) {
  return "parallel.tensor and parallel.context exchange activations in every layer: lower them, or keep their ranks "
         "on one node";
}

std::string fewer_updates(const StepFigures&, const Config&) {
  return "a larger training.global_batch_size moves the same bytes for more tokens";
}

const std::vector<BindingRule>& rules() {
  using F = const StepFigures&;
  using C = const Config&;
  static const std::vector<BindingRule> table{
      {Activity::products, [](F, C c) { return c.activation_checkpoint.mode != "none"; },
       [](F, C) {
         return std::string(
             "activation_checkpoint.mode = \"none\" would not compute activations again, if memory allows");
       }},
      {Activity::products, [](F, C c) { return c.training.precision == "fp32"; },
       [](F, C c) {
         const std::string bf16 = "training.precision = \"bf16\" is faster where the processor multiplies bf16";
         if (c.training.matmul_precision != "highest") return bf16;
         return bf16 + "; with AMX, training.matmul_precision = \"high\" lowers the precision of products alone";
       }},
      {Activity::products, always,
       [](F f, C) {
         const bool alone = f.of(Activity::products) > 0.8 * f.step();
         return std::string(alone ? "little else is left to gain: more cores or ranks make steps shorter"
                                  : "more cores or ranks make steps shorter; larger micro-batches use products better");
       }},
      {Activity::attention, always,
       [](F, C) { return std::string("it grows with training.seq_len, so shorter rows take less"); }},
      {Activity::kernels, [](F f, C) { return f.micro_batches == 1; },
       [](F, C) {
         return std::string("a larger training.global_batch_size updates the weights less often for the same tokens");
       }},
      {Activity::kernels, [](F, C c) { return c.activation_checkpoint.mode != "none"; },
       [](F, C) {
         return std::string(
             "activation_checkpoint.mode = \"none\" would not compute activations again, if memory allows");
       }},
      {Activity::kernels, always,
       [](F, C) { return std::string("a larger training.local_batch_size needs fewer micro-batches"); }},
      {Activity::gathers, splits_layers, fewer_slices},
      {Activity::gathers, shares_between_nodes, degree_of_a_node},
      {Activity::gathers, [](F, C c) { return c.zero.stage == 3 && c.offload.parameters == "none"; },
       [](F, C) {
         return std::string(
             "zero.stage = 2 would gather weights once a step instead of twice a micro-batch, if memory allows");
       }},
      {Activity::gathers, always, fewer_updates},
      {Activity::sums, splits_layers, fewer_slices},
      {Activity::sums, shares_between_nodes, degree_of_a_node},
      {Activity::sums, [](F f, C c) { return c.zero.stage >= 2 && f.micro_batches > 1; },
       [](F, C) {
         return std::string(
             "zero.stage = 1 would sum gradients once a step instead of once a micro-batch, if memory allows");
       }},
      {Activity::sums, always, fewer_updates},
      {Activity::disk, [](F, C c) { return c.offload.parameters == "nvme"; },
       [](F, C) {
         return std::string("offload.parameters = \"cpu\" would keep weights in host memory, if it has room");
       }},
      {Activity::disk, [](F f, C) { return f.micro_batches == 1; }, fewer_updates},
      {Activity::disk, always,
       [](F, C) {
         return std::string("offload.optimizer = \"cpu\" would keep states in host memory, if it has room");
       }},
      {Activity::data, always,
       [](F, C) { return std::string("keep data files and job.output_dir (token_cache/) on a fast disk"); }},
      {Activity::ranks, [](F, C c) { return c.parallel.pipeline > 1; },
       [](F, C) {
         return std::string(
             "more micro-batches make a pipeline's idle part smaller: raise training.global_batch_size or lower "
             "training.local_batch_size");
       }},
      {Activity::ranks, [](F f, C) { return f.slowest_busy > 1.1 * (f.step() - f.of(Activity::ranks)); },
       [](F f, C) {
         return text("rank ", f.slowest_rank, " is the slowest: see whether its machine does other work");
       }},
      {Activity::ranks, always,
       [](F, C) { return std::string("ranks are late in turns: see whether their machines do other work"); }},
      {Activity::other, always, [](F, C) { return std::string("a larger metrics.log_interval writes less often"); }},
  };
  return table;
}

const char* words_for(Activity activity) {
  switch (activity) {
    case Activity::products:
      return "matrix products";
    case Activity::attention:
      return "attention";
    case Activity::kernels:
      return "other kernels";
    case Activity::gathers:
    case Activity::sums:
      return "the link";
    case Activity::disk:
      return "the disk";
    case Activity::data:
      return "reading data";
    case Activity::ranks:
      return "waiting for other ranks";
    default:
      return "other work";
  }
}

std::string decimal(double number, int places) { return text(std::fixed, std::setprecision(places), number); }

}  // namespace

double StepFigures::step() const { return std::accumulate(seconds.begin(), seconds.end(), 0.0); }

Activity binding_of(const StepFigures& figures) {
  std::array<double, activities> parts = figures.seconds;
  double &gathers = parts[std::size_t(Activity::gathers)], &sums = parts[std::size_t(Activity::sums)];
  (gathers >= sums ? gathers : sums) = gathers + sums;
  return Activity(std::max_element(parts.begin(), parts.end()) - parts.begin());
}

std::string remedy_of(const StepFigures& figures, const Config& config) {
  const Activity by = binding_of(figures);
  for (const BindingRule& rule : rules())
    if (rule.by == by && rule.holds(figures, config)) return rule.remedy(figures, config);
  return "";
}

std::string what_binds(const StepFigures& figures, const Config& config) {
  const Activity by = binding_of(figures);
  const bool link = by == Activity::gathers || by == Activity::sums;
  const double part = link ? figures.of(Activity::gathers) + figures.of(Activity::sums) : figures.of(by);
  std::string rate;
  if (link && figures.link_rate > 0) {
    rate = " at " + decimal(figures.link_rate / 1e9, 1);
    if (figures.best_link_rate > 0)
      rate += " of " + decimal(std::max(figures.best_link_rate, figures.link_rate) / 1e9, 1);
    rate += " GB/s";
  }
  return text("bound by ", words_for(by), ", ", std::lround(100 * part / std::max(1e-9, figures.step())),
              " % of a step of ", decimal(figures.step(), figures.step() < 0.1 ? 4 : 2), " s", rate, ": ",
              remedy_of(figures, config));
}

}  // namespace zero
