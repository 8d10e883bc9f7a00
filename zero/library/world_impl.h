#pragma once
// What a World is made of.
#include <memory>
#include <string>

#include "base/files/file_calls.h"
#include "comm/mesh/mesh.h"
#include "comm/world/job.h"
#include "zero/library/include/zero/world.h"
#include "zero/library/state_folders.h"

namespace zero {

/// Calls that messages name.
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
  std::unique_ptr<Job> own_job;             // null: it is somebody else's
  Job* job = nullptr;                       // null: the ranks belong to a test
  std::unique_ptr<Communicator> on_device;  // null: the host's ranks take the device's tensors
  Communicator* ranks = nullptr;            // for tensors of the device
  Communicator* host = nullptr;
  Communicator* control = nullptr;  // of long patience
  at::Device device = at::kCPU;
  int local_rank = 0;
  std::shared_ptr<CallNames> names = std::make_shared<CallNames>();
  int models = 0;              // that were sharded
  double backward_weight = 1;  // of the backward under way

  std::shared_ptr<FileCalls> files = std::make_shared<FileCalls>();  // that states are written and read by
  std::unique_ptr<StateFolders> state_folders = std::make_unique<StateFolders>(*files);  // the main process's

  static CallTag tag(WorldCall call) { return {Phase::other, int(call)}; }
  /// The communicators know the names of calls from now on.
  void name_calls();
  /// The names of a model's units, which are given the numbers from the result on.
  int name_units(std::vector<std::string> units);
  /// Gradients <- those of all processes' losses, as model.backward() weighs them, in units of this one's. Collective.
  void sum_gradients(const at::Tensor& gradient, CallTag tag = {Phase::backward});
  void explain_failures(const std::string& explanation);
};

/// A world of these ranks, which outlive it: for tests. `files`: null: the system's.
World world_of(Communicator& ranks, std::shared_ptr<FileCalls> files = nullptr);

/// The rows of all processes, without a graph. Collective.
at::Tensor gather_rows(const World& world, const at::Tensor& rows, const std::vector<std::int64_t>& counts,
                       CallTag tag);

}  // namespace zero
