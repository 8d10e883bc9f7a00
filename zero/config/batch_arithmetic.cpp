#include "zero/config/batch_arithmetic.h"

#include <bit>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/log.h"

namespace zero {
namespace {

/// Replicas add up the sums of sharding groups. The two sums form one tree only if both numbers are powers of two.
void check_reproducible(const Config& config, const MeshShape& mesh) {
  if (!config.job.over_ranks()) return;
  if (!config.training.global_batch_size)
    throw InputError(config.where("job.reproducible") +
                     ": needs training.global_batch_size, since without it the batch depends on the ranks");
  const int ranks = mesh.size(axes::rows);
  if (mesh.replicate > 1 && !std::has_single_bit(unsigned(ranks)))
    throw InputError(text(config.where("job.reproducible"),
                          ": hybrid sharding sums in one order only over a power of two of ranks, not over ", ranks));
}

}  // namespace

namespace {

/// The degrees of [parallel] that are not 1.
struct AxisSizes {
  std::vector<std::pair<std::string, int>> given;

  explicit AxisSizes(const ParallelConfig& parallel) {
    for (const auto& [name, ranks] : {std::pair("tensor", parallel.tensor), std::pair("context", parallel.context),
                                      std::pair("pipeline", parallel.pipeline)})
      if (ranks > 1) given.emplace_back(name, int(ranks));
  }
  /// Returns "tensor x context = 8 "; empty for a single axis.
  std::string product() const {
    std::string names;
    std::int64_t together = 1;
    for (const auto& [name, ranks] : given) {
      names += (names.empty() ? "" : " x ") + name;
      together *= ranks;
    }
    return given.size() < 2 ? "" : text(names, " = ", together, " ");
  }
};

/// Throws InputError if the pipeline's schedule does not support the number of micro-batches.
void check_micro_batches(const Config& config, std::int64_t micro_batches) {
  const std::int64_t stages = config.parallel.pipeline;
  if (stages == 1 || config.parallel.schedule != "interleaved" || micro_batches % stages == 0) return;
  throw InputError(text(config.where("parallel.schedule"),
                        ": \"interleaved\" needs a multiple of the number of stages, ", stages,
                        ", as micro-batches, and a step has ", micro_batches));
}

void check_regather(const Config& config, const MeshShape& mesh) {
  const bool gathers = mesh.size(axes::states | MeshAxis::tensor) > 1 || config.offload.parameters != "none";
  if (mesh.pipeline == 1 || config.zero.stage != 3 || !gathers || config.parallel.regather) return;
  throw InputError(text(config.where("zero.stage"),
                        ": 3 gathers the weights of a pipeline's stage twice for each micro-batch, where stages 0 to 2 "
                        "gather them once a step at most, and each of the ",
                        mesh.pipeline, " stages holds only its own blocks: this needs parallel.regather = true"));
}

}  // namespace

MeshShape mesh_of(const Config& config, int ranks) {
  const ParallelConfig& parallel = config.parallel;
  const std::int64_t product = parallel.tensor * parallel.context * parallel.pipeline;
  const AxisSizes sizes(parallel);
  if (product > ranks || ranks % product != 0)
    throw InputError(text(config.where("parallel." + sizes.given.front().first), ": ", sizes.product(),
                          "must divide the number of ranks, ", ranks));
  const int together = int(product), copies = ranks / together;  // number of copies of the whole model
  const std::int64_t degree = config.zero.shard_degree;
  if (degree > 0 && copies % degree != 0)
    throw InputError(text(config.where("zero.shard_degree"), ": must divide the number of ranks",
                          together > 1 ? text(" / ", together, " of [parallel]") : "", ", ", copies,
                          ", or be 0 (all)"));
  MeshShape shape = MeshShape::hybrid(copies, int(degree));
  shape.context = int(parallel.context);
  shape.tensor = int(parallel.tensor);
  shape.pipeline = int(parallel.pipeline);
  return shape;
}

BatchArithmetic BatchArithmetic::of(const Config& config, int job_ranks) {
  ZERO_CHECK(job_ranks >= 1, "no ranks");
  const MeshShape mesh = mesh_of(config, job_ranks);
  const int ranks = mesh.size(axes::rows);
  check_reproducible(config, mesh);
  const std::string size = config.job.over_ranks() ? "job.reproducible_rows" : "local_batch_size";
  const std::int64_t local = config.micro_batch_rows();
  if (local > std::numeric_limits<std::int64_t>::max() / (4 * ranks))
    throw InputError(config.where(config.job.over_ranks() ? "job.reproducible_rows" : "training.local_batch_size") +
                     ": is too large");
  const std::int64_t pass = local * ranks;
  const std::int64_t global = config.training.global_batch_size.value_or(pass);
  if (global % pass != 0)
    throw InputError(text(config.where("training.global_batch_size"), ": must be a multiple of ", size,
                          " x ranks = ", local, " x ", ranks, " = ", pass));
  check_micro_batches(config, global / pass);
  check_regather(config, mesh);
  return {mesh, ranks, local, global, global / pass};
}

std::string BatchArithmetic::describe() const {
  const int together = mesh.size(axes::rows.others());
  const std::string who = together == 1 ? (ranks == 1 ? " rank x " : " ranks x ")
                                        : text(ranks == 1 ? " group" : " groups", " of ", together, " ranks x ");
  return "global batch " + std::to_string(global_batch_size) + " = " + std::to_string(ranks) + who +
         std::to_string(accumulation) + (accumulation == 1 ? " micro-batch x " : " micro-batches x ") +
         std::to_string(local_batch_size) + (local_batch_size == 1 ? " sequence" : " sequences");
}

}  // namespace zero
