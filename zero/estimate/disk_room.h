#pragma once
// Checks before the first step that the disk has room for a run's output. Otherwise training could end with a model
// that cannot be written.
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
  std::int64_t checkpoints = 0;  // the kept ones and the one being written; 0 without an interval
  std::int64_t records = 0;      // metrics.jsonl, tb/, trackio/ and config.toml

  std::int64_t sum() const { return result + checkpoints + records; }
};

/// `model`: in its trained form; `steps`: none if unknown.
DiskNeed disk_need(const Config& config, const Model& model, const MemoryPlan& plan, std::optional<std::int64_t> steps);

/// Bytes that the run may write: free space plus files of an earlier run that this one will remove. -1: unknown.
std::int64_t output_room(const Config& config, FormerRun former);

/// Throws InputError with need, room and remedy if the disk has too little. Also counts states that
/// [offload] keeps on the same disk (`plan.disk` for each of `ranks_here`), unless they exist
/// already.
void require_room(const Config& config, const DiskNeed& need, std::int64_t room, std::int64_t offloaded);

/// Bytes of states that this node's ranks will put on the disk of job.output_dir; 0 if offload.nvme_dir is on another
/// disk.
std::int64_t offloaded_beside(const Config& config, const MemoryPlan& plan, int ranks_here);

/// Bytes that can be written to a directory, less 1 % in reserve; -1: unknown. That is the free space of its disk; for
/// a disk in memory, at most the machine's free memory.
std::int64_t room_in(const std::string& directory);

}  // namespace zero
