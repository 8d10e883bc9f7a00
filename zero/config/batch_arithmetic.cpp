#include "zero/config/batch_arithmetic.h"

#include <limits>

#include "base/error.h"

namespace zero {
namespace {

// Local batch sizes with which this global batch works, the largest last.
std::string working_local_sizes(std::int64_t global, int ranks) {
  std::string sizes;
  for (std::int64_t local = 1; local <= global / ranks && local <= 64; ++local)
    if (global % (local * ranks) == 0) sizes += (sizes.empty() ? "" : ", ") + std::to_string(local);
  return sizes;
}

std::string remedy(std::int64_t global, std::int64_t pass, int ranks) {
  const std::int64_t below = global / pass * pass;
  std::string text = "use global_batch_size = " + (below ? std::to_string(below) + " or " : std::string()) +
                     std::to_string(below + pass);
  const std::string locals = working_local_sizes(global, ranks);
  if (!locals.empty()) text += ", or local_batch_size = " + locals;
  return text;
}

}  // namespace

MeshShape mesh_of(const Config& config, int ranks) {
  const std::int64_t degree = config.zero.shard_degree;
  if (degree == 0 || ranks % degree == 0) return MeshShape::hybrid(ranks, int(degree));
  std::string divisors;
  for (int d = 1; d <= ranks; ++d)
    if (ranks % d == 0) divisors += (divisors.empty() ? "" : ", ") + std::to_string(d);
  throw InputError(config.where("zero.shard_degree") + ": must divide the number of ranks, " + std::to_string(ranks) +
                   ": 0 (all), " + divisors);
}

BatchArithmetic BatchArithmetic::of(const Config& config, int job_ranks) {
  ZERO_CHECK(job_ranks >= 1, "no ranks");
  const MeshShape mesh = mesh_of(config, job_ranks);
  const int ranks = mesh.size(axes::rows);
  const std::int64_t local = config.training.local_batch_size;
  if (local > std::numeric_limits<std::int64_t>::max() / (4 * ranks))
    throw InputError(config.where("training.local_batch_size") + ": is too large");
  const std::int64_t pass = local * ranks;
  const std::int64_t global = config.training.global_batch_size.value_or(pass);
  if (global % pass != 0)
    throw InputError(config.where("training.global_batch_size") +
                     ": must be a multiple of local_batch_size x ranks = " + std::to_string(local) + " x " +
                     std::to_string(ranks) + " = " + std::to_string(pass) + "; " + remedy(global, pass, ranks));
  return {mesh, ranks, local, global, global / pass};
}

std::string BatchArithmetic::describe() const {
  return "global batch " + std::to_string(global_batch_size) + " = " + std::to_string(ranks) +
         (ranks == 1 ? " rank x " : " ranks x ") + std::to_string(accumulation) +
         (accumulation == 1 ? " micro-batch x " : " micro-batches x ") + std::to_string(local_batch_size) +
         (local_batch_size == 1 ? " sequence" : " sequences");
}

}  // namespace zero
