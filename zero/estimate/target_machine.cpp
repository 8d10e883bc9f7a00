#include "zero/estimate/target_machine.h"

#include <utility>

#include "base/byte_count.h"
#include "base/error.h"
#include "base/log.h"
#include "offload/memory/process_memory.h"

namespace zero {
namespace {

constexpr std::int64_t device_context = std::int64_t{1} << 30;
constexpr std::int64_t most_memory = std::int64_t{1} << 50;  // per rank, so that sums over a node fit into 64 bits

// Suggests a unit for a bare number: gibibytes, or bytes if that would exceed any machine.
void refuse_bare_number(const std::string& words) {
  for (const auto& [name, unit] : {std::pair("gibibytes", "GiB"), std::pair("bytes", "B")})
    if (const auto bytes = bytes_of_text(words + unit); bytes && *bytes <= most_memory)
      throw InputError(text("--memory ", words, ": needs a unit; ", name, " are written --memory ", words, unit,
                            " (units: B, KiB, MiB, GiB, TiB, or KB to TB of 1000)"));
}

// Returns the option that describes another machine, for the error that --memory is missing.
std::string asked_by(const TargetMachine& target) {
  return target.device.empty() ? text("--ranks-per-node ", target.ranks_per_node) : "--device " + target.device;
}

// Throws InputError for less memory than every rank needs, since an estimate would be meaningless.
void require_floor(const TargetMachine& target, std::int64_t memory, std::int64_t floor, const std::string& what) {
  if (memory > floor) return;
  throw InputError(
      text("--memory ", target.memory, ": is no more than the ", bytes_text(floor), " that ", what, "; name more"));
}

}  // namespace

c10::Device device_of(const TargetMachine& target, const Config& config) {
  const std::string& name = target.device.empty() ? config.training.device : target.device;
  return name == "cuda" ? c10::Device(at::kCUDA, 0) : c10::Device(at::kCPU);
}

NodeBudget budget_of(const TargetMachine& target, c10::Device device) {
  if (target.memory.empty())
    throw InputError(
        asked_by(target) +
        ": also needs --memory SIZE, of one rank's memory on CPUs or of one GPU with --device cuda, as in --memory 80GiB");
  const std::optional<std::int64_t> memory = bytes_of_text(target.memory);
  if (!memory) refuse_bare_number(target.memory);
  if (!memory)
    throw InputError(
        text("--memory ", target.memory, ": is no size; name a number above 0 with its unit, as in --memory 80GiB"));
  if (*memory > most_memory)
    throw InputError(text("--memory ", target.memory, ": is more than any GPU or rank has; name at most 1024TiB"));
  NodeBudget budget;
  budget.assumed = true;
  budget.ranks_here = target.ranks_per_node;
  budget.process = pss_bytes();
  if (device.is_cpu()) {
    require_floor(target, *memory, budget.process, "a rank's process takes before anything is allocated");
    // The memory that a rank's process holds counts against its budget.
    budget.memory = {(*memory - budget.process) * target.ranks_per_node, "--memory"};
  } else {
    require_floor(target, *memory, device_context, "are left to CUDA's context and NCCL");
    budget.device_free = *memory - device_context;
  }
  return budget;
}

}  // namespace zero
