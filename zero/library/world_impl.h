#pragma once
// The implementation of a World.
#include <memory>
#include <string>

#include "base/files/file_calls.h"
#include "comm/mesh/mesh.h"
#include "comm/world/job.h"
#include "zero/library/include/zero/world.h"
#include "zero/library/state_folders.h"

namespace zero {

/// Calls named in messages.
enum class WorldCall : std::uint8_t {
  barrier,
  sum,
  mean,
  broadcast,
  gather_for_metrics,
  gather,
  next_batch,
  begin_of_loader
};

struct World::Impl {
  std::unique_ptr<Job> own_job;             // null: owned elsewhere
  Job* job = nullptr;                       // null: a test's ranks
  std::unique_ptr<Communicator> on_device;  // null: the host's ranks accept device tensors
  Communicator* ranks = nullptr;            // for device tensors
  Communicator* host = nullptr;
  Communicator* control = nullptr;  // with a long deadline
  at::Device device = at::kCPU;
  int local_rank = 0;
  std::shared_ptr<CallNames> names = std::make_shared<CallNames>();
  int models = 0;              // number of sharded models
  double backward_weight = 1;  // of the current backward

  std::shared_ptr<FileCalls> files = std::make_shared<FileCalls>();  // for reading and writing states
  std::unique_ptr<StateFolders> state_folders = std::make_unique<StateFolders>(*files);  // the main process's

  static CallTag tag(WorldCall call) { return {Phase::other, int(call)}; }
  /// Registers the names of calls with the communicators.
  void name_calls();
  /// Registers a model's unit names and returns the first unit's number.
  int name_units(std::vector<std::string> units);
  /// Sums the gradients of all processes' losses in place, weighted as in model.backward() and scaled to the process's
  /// own loss.
  void sum_gradients(const at::Tensor& gradient, CallTag tag = {Phase::backward});
  void explain_failures(const std::string& explanation);
};

/// A world of these ranks, which must outlive it: for tests. `files`: the file calls; null means the system's.
World world_of(Communicator& ranks, std::shared_ptr<FileCalls> files = nullptr);

/// The rows of all processes, without a graph. Collective.
at::Tensor gather_rows(const World& world, const at::Tensor& rows, const std::vector<std::int64_t>& counts,
                       CallTag tag);

}  // namespace zero
