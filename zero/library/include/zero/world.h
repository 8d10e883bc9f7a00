#pragma once
// World: the processes that train together, as mpirun or srun started them.
#include <torch/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace zero {

struct WorldOptions {
  std::string device = "auto";    // auto | cpu | cuda: the device of this process
  double deadline_seconds = 300;  // longest wait for other processes in one call, after which the job fails
};

/// A handle: copies refer to the same processes. Not thread-safe.
class World {
 public:
  /// Returns all processes that mpirun or srun started, or this process alone if neither did. LibTorch's operators get
  /// this process's share of the node's cores, unless OMP_NUM_THREADS is set. Call it once per program. An uncaught
  /// exception ends all processes with one exit code: 2 for InputError, otherwise 1. The main process reports an
  /// exception that all processes throw. Otherwise the process that throws reports it.
  static World from_environment(const WorldOptions& options = {});
  /// Returns the processes of a communicator, given as MPI_Comm_c2f(communicator), in a program that initialises and
  /// finalises MPI itself. In such a program, from_environment() returns all processes. Call it on MPI's main thread
  /// unless MPI allows several threads (MPI_THREAD_SERIALIZED). Collective.
  static World from_communicator(int communicator, const WorldOptions& options = {});
  /// Runs a whole program and returns the exit code for main(). If an exception is not caught, destructors still run.
  static int run(const std::function<int(World&)>& program, const WorldOptions& options = {});

  int rank() const;
  int size() const;
  /// Rank among the processes of this node.
  int local_rank() const;
  bool is_main() const { return rank() == 0; }
  /// This process's device: put model and batches there.
  torch::Device device() const;

  /// Seeds torch's generators. The main process gets the seed and the others get numbers derived from it, so each
  /// process draws its own dropout and noise. A model that is built afterwards has the main process's values on all
  /// processes.
  void manual_seed(std::uint64_t seed) const;

  // All processes must call the following functions in the same order.

  void barrier() const;
  /// Runs the work on the main process, on a thread of its own. The others wait for as long as the work takes; the
  /// deadline only covers reaching this call. An exception is rethrown on all processes. The work must not use a
  /// sharded model or call World functions that reach other processes. Such calls throw InputError and leave the model
  /// unchanged. Call on_main() on all processes, not inside `if (world.is_main())`.
  void on_main(const std::function<void()>& work) const;
  /// Runs the work on the main process first, then on the others, for downloads and caches. The rules are those of
  /// on_main(). The main process then waits at most an hour for the others.
  void main_first(const std::function<void()>& work) const;
  /// Sums or averages elementwise over processes; all processes get the result. Shapes and types must agree. A sum has
  /// its values' type; bools are or-ed. A mean has its values' type if that is a floating-point type, otherwise fp32.
  /// Results are for reporting only: backward through the results of sum(), mean(), gather_for_metrics() and
  /// broadcast() throws InputError.
  torch::Tensor sum(const torch::Tensor& value) const;
  torch::Tensor mean(const torch::Tensor& value) const;
  /// Concatenates the rows of all processes in rank order. Each process may have any number of rows, even none. For
  /// batches of shard() this restores the order of the data, and nothing is repeated or missing.
  torch::Tensor gather_for_metrics(const torch::Tensor& rows) const;
  /// Returns the same rows with a gradient, for losses over the rows of all processes (CLIP, SimCLR). The gradient of a
  /// process's rows includes all processes' losses. They are weighted as in model.backward() and scaled to the
  /// process's own loss. Backward is collective and differentiable.
  torch::Tensor gather(const torch::Tensor& rows) const;
  /// Returns the main process's values on all processes.
  torch::Tensor broadcast(const torch::Tensor& value) const;

  struct Impl;
  explicit World(std::shared_ptr<Impl> impl);
  Impl& impl() const { return *impl_; }

 private:
  std::shared_ptr<Impl> impl_;
};

}  // namespace zero
