#pragma once
// World: the processes that train together, as mpirun or srun started them.
#include <torch/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace zero {

struct WorldOptions {
  std::string device = "auto";    // auto | cpu | cuda: where this process computes
  double deadline_seconds = 300;  // the longest wait for other processes in one call, before the job fails
};

/// A handle: copies mean the same processes. Not for several threads at once.
class World {
 public:
  /// Under mpirun or srun all their processes; without them this process alone. LibTorch's operators get this process's
  /// share of the node's cores, unless OMP_NUM_THREADS says otherwise. Once in a program. What the program does not catch
  /// ends all processes with one exit code (2 where something was refused, 1 else): what all throw is told once, by the main
  /// one, what one throws by that one.
  static World from_environment(const WorldOptions& options = {});
  /// The processes of a communicator of a program that has started MPI itself, as MPI_Comm_c2f(communicator) names it;
  /// from_environment() takes all processes of such a program. MPI goes on when the World ends, and is ended by the
  /// program. Unless MPI serves several threads (MPI_THREAD_SERIALIZED), this is called on MPI's main thread. Collective.
  static World from_communicator(int communicator, const WorldOptions& options = {});
  /// The same around a whole program, for main() to return, where destructors are to run when it ends so.
  static int run(const std::function<int(World&)>& program, const WorldOptions& options = {});

  int rank() const;
  int size() const;
  /// Among the processes of this node.
  int local_rank() const;
  bool is_main() const { return rank() == 0; }
  /// Of this process: model and batches go there.
  torch::Device device() const;

  /// Seeds torch's generators: the main process's with the seed, those of others with numbers that follow from it, so that
  /// each process has dropout and noise of its own. A model that is built afterwards has the main process's values on all.
  void manual_seed(std::uint64_t seed) const;

  // Each of the following is called by all processes, in the same order.

  void barrier() const;
  /// The main process alone does the work, on a thread of its own; the others wait for it, however long it takes: the
  /// deadline is for coming here. What it throws is thrown everywhere. The work uses no
  /// sharded model and calls nothing of World that reaches other processes: InputError, which leaves the model as it was. On
  /// all processes, not inside of `if (world.is_main())`.
  void on_main(const std::function<void()>& work) const;
  /// The main process does the work before the others do (downloads, caches), by the same rules; the main one waits an hour
  /// for theirs at most.
  void main_first(const std::function<void()>& work) const;
  /// Elementwise over processes, the same on all of them. Shapes and types agree. A sum is of its values' type, where bools
  /// are or-ed; so is a mean of floating ones, and that of others is fp32. Numbers for people: a backward through the result
  /// of these and of the next two throws InputError.
  torch::Tensor sum(const torch::Tensor& value) const;
  torch::Tensor mean(const torch::Tensor& value) const;
  /// The rows of all processes one behind the other, by rank: each has any number of them, none too. What a batch of
  /// shard() gives is thereby in the order of the data, nothing twice and nothing missing.
  torch::Tensor gather_for_metrics(const torch::Tensor& rows) const;
  /// The same rows with a gradient, for losses over the rows of all processes (CLIP, SimCLR). The gradient of a process's
  /// rows is that of all processes' losses, as model.backward() weighs them, in units of its own loss. Backward is
  /// collective, and may be differentiated itself.
  torch::Tensor gather(const torch::Tensor& rows) const;
  /// The main process's values, on all of them.
  torch::Tensor broadcast(const torch::Tensor& value) const;

  struct Impl;
  explicit World(std::shared_ptr<Impl> impl);
  Impl& impl() const { return *impl_; }

 private:
  std::shared_ptr<Impl> impl_;
};

}  // namespace zero
