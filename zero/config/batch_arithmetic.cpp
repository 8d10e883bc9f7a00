#include "zero/config/batch_arithmetic.h"

#include <bit>
#include <limits>

#include "base/error.h"
#include "base/log.h"

namespace zero {
namespace {

// Local batch sizes that work with this global batch, the largest last.
std::string working_local_sizes(std::int64_t global, int ranks) {
  std::string sizes;
  for (std::int64_t local = 1; local <= global / ranks && local <= 64; ++local)
    if (global % (local * ranks) == 0) sizes += (sizes.empty() ? "" : ", ") + std::to_string(local);
  return sizes;
}

std::string remedy(std::int64_t global, std::int64_t pass, int ranks, const std::string& size) {
  const std::int64_t below = global / pass * pass;
  std::string text = "use global_batch_size = " + (below ? std::to_string(below) + " or " : std::string()) +
                     std::to_string(below + pass);
  const std::string locals = working_local_sizes(global, ranks);
  if (!locals.empty()) text += ", or " + size + " = " + locals;
  return text;
}

std::string divisors_of(int number) {
  std::string divisors;
  for (int d = 1; d <= number; ++d)
    if (number % d == 0) divisors += (divisors.empty() ? "" : ", ") + std::to_string(d);
  return divisors;
}

/// The micro-batches of one round (one a rank) are a subtree of all only if their number is a power of two.
void check_reproducible(const Config& config, int ranks) {
  if (!config.job.over_ranks()) return;
  if (!config.training.global_batch_size)
    throw InputError(config.where("job.reproducible") +
                     ": needs training.global_batch_size, since without it the batch depends on the ranks");
  if (!std::has_single_bit(unsigned(ranks)))
    throw InputError(config.where("job.reproducible") +
                     ": runs on 1, 2, 4, 8, ... ranks, whose sums are the same; there are " + std::to_string(ranks));
}

}  // namespace

MeshShape mesh_of(const Config& config, int ranks) {
  const int tensor = int(config.parallel.tensor), context = int(config.parallel.context), together = tensor * context;
  if (ranks % together != 0) {
    const int below = ranks / together * together;
    const bool both = tensor > 1 && context > 1;
    throw InputError(text(config.where(tensor > 1 ? "parallel.tensor" : "parallel.context"),
                          both ? text(" x context = ", together) : "", ": must divide the number of ranks, ", ranks,
                          ": ", divisors_of(ranks), "; or start ", below ? text(below, " or ") : "", below + together,
                          " ranks"));
  }
  const int copies = ranks / together;  // of the whole model's computation
  const std::int64_t degree = config.zero.shard_degree;
  if (degree > 0 && copies % degree != 0)
    throw InputError(text(config.where("zero.shard_degree"), ": must divide the number of ranks",
                          together > 1 ? text(" / ", together, " of [parallel]") : "", ", ", copies, ": 0 (all), ",
                          divisors_of(copies)));
  MeshShape shape = MeshShape::hybrid(copies, int(degree));
  shape.context = context;
  shape.tensor = tensor;
  return shape;
}

BatchArithmetic BatchArithmetic::of(const Config& config, int job_ranks) {
  ZERO_CHECK(job_ranks >= 1, "no ranks");
  const MeshShape mesh = mesh_of(config, job_ranks);
  const int ranks = mesh.size(axes::rows);
  check_reproducible(config, ranks);
  const std::string size = config.job.over_ranks() ? "job.reproducible_rows" : "local_batch_size";
  const std::int64_t local = config.micro_batch_rows();
  if (local > std::numeric_limits<std::int64_t>::max() / (4 * ranks))
    throw InputError(config.where(config.job.over_ranks() ? "job.reproducible_rows" : "training.local_batch_size") +
                     ": is too large");
  const std::int64_t pass = local * ranks;
  const std::int64_t global = config.training.global_batch_size.value_or(pass);
  if (global % pass != 0)
    throw InputError(config.where("training.global_batch_size") + ": must be a multiple of " + size +
                     " x ranks = " + std::to_string(local) + " x " + std::to_string(ranks) + " = " +
                     std::to_string(pass) + "; " + remedy(global, pass, ranks, size));
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
