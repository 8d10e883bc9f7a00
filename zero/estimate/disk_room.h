#pragma once
// What a run writes, and whether the disk has room for it: asked before the first step, since a model that cannot be
// written at the end has been trained for nothing.
#include <cstdint>
#include <optional>

#include "models/model.h"
#include "zero/config/config.h"
#include "zero/estimate/memory_plan.h"
#include "zero/output/output_dir.h"

namespace zero {

/// Bytes under job.output_dir, at most.
struct DiskNeed {
  std::int64_t result = 0;       // model/ or adapter/
  std::int64_t checkpoints = 0;  // those that stay and the one being written; 0 without an interval
  std::int64_t records = 0;      // metrics.jsonl and config.toml

  std::int64_t sum() const { return result + checkpoints + records; }
};

/// `model` as it will be trained; `steps` where they are known.
DiskNeed disk_need(const Config& config, const Model& model, const MemoryPlan& plan, std::optional<std::int64_t> steps);

/// Bytes that the run may fill: what is free, and what a former run holds that this one will remove. -1: unknown.
std::int64_t output_room(const Config& config, FormerRun former);

/// Throws InputError with needs, room and remedy where the disk has too little. States that [offload] keeps on the same
/// disk
/// (`plan.disk` of each of `ranks_here`) are counted with them, unless they are there already.
void require_room(const Config& config, const DiskNeed& need, std::int64_t room, std::int64_t offloaded);

/// Bytes of states that the ranks of this node will put on the disk of job.output_dir: 0 where offload.nvme_dir is on
/// another.
std::int64_t offloaded_beside(const Config& config, const MemoryPlan& plan, int ranks_here);

/// Bytes that may be written into a directory, with 1 % to spare: what its disk has free, and of a disk in memory no
/// more than the machine's memory has. -1: unknown.
std::int64_t room_in(const std::string& directory);

}  // namespace zero
