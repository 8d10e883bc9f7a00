#pragma once
// Checks before the first step that the disk has enough space for a run's output. Otherwise training could end with a
// model that cannot be written.
#include <cstdint>
#include <optional>

#include "models/model.h"
#include "zero/config/config.h"
#include "zero/estimate/memory_plan.h"
#include "zero/output/output_dir.h"

namespace zero {

/// Upper bounds of the bytes under job.output_dir.
struct DiskNeed {
  std::int64_t result = 0;       // model/ or adapter/
  std::int64_t checkpoints = 0;  // the kept checkpoints and the one being written; 0 without an interval
  std::int64_t records = 0;      // metrics.jsonl, tb/, trackio/ and config.toml

  std::int64_t sum() const { return result + checkpoints + records; }
};

/// `model`: as trained; `steps`: none if unknown.
DiskNeed disk_need(const Config& config, const Model& model, const MemoryPlan& plan, std::optional<std::int64_t> steps);

/// Returns the bytes that the run may write: free space plus files of an earlier run that this run will remove; -1 if
/// unknown.
std::int64_t output_room(const Config& config, FormerRun former);

/// If the disk has too little space, throws InputError with the need, the available space and a remedy. States that
/// [offload] keeps on the same disk count too (`plan.disk` for each of `ranks_here`), unless they exist already.
void require_room(const Config& config, const DiskNeed& need, std::int64_t room, std::int64_t offloaded);

/// Returns the bytes of states that this node's ranks will put on the disk of job.output_dir; 0 if offload.nvme_dir is
/// on another disk.
std::int64_t offloaded_beside(const Config& config, const MemoryPlan& plan, int ranks_here);

/// Returns the bytes that can be written to a directory, less a reserve of 1 %; -1 if unknown. That is the free space
/// of its disk; for a disk in memory, at most the machine's free memory.
std::int64_t room_in(const std::string& directory);

}  // namespace zero
