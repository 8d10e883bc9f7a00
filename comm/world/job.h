#pragma once
// The processes of one job. Job starts and ends MPI, knows the node of each rank, and decides how failures end the job.
// main() owns it; there are no globals.
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/core_share.h"
#include "comm/communicator.h"
#include "comm/mpi/mpi_communicator.h"

namespace zero {

struct JobOptions {
  /// The handle (MPI_Comm_c2f) of a communicator whose ranks form the job, from a program that has started MPI itself.
  /// If not set, all ranks form the job.
  std::optional<int> communicator;
  MpiOptions mpi;                                        // of communicator()
  std::chrono::duration<double> control_deadline{3600};  // of control(): one rank may work for all others
  std::chrono::duration<double> grace{
      1};  // a failing rank waits this long for the others to fail too, then aborts the job
};

class Job {
 public:
  /// Starts MPI, unless the program has already done so. A program that starts MPI also ends it. Without mpirun the job
  /// has one rank. A process can have one job only. Throws InputError if MPI has ended, or if the calling thread may
  /// not call MPI. Also throws if a launcher started several tasks but MPI sees only this one.
  static Job start(JobOptions options = {});
  Job(Job&&) noexcept;
  Job& operator=(Job&&) noexcept;
  /// Ends MPI if the job started it and nothing else has ended it. Communicators made by split() may live longer, but
  /// must not be used afterwards.
  ~Job();

  /// Called by main() of every program. Starts the job, runs the body, and returns an exit code on which all ranks
  /// agree. If a rank failed, that is the cause's code (comm/outcome.h), otherwise the largest code that a body
  /// returned. If all ranks throw the same exception, rank 0 prints it once. Any other exception is printed by its rank
  /// and ends the job at once on all ranks.
  static int run(const std::function<int(Job&)>& body, JobOptions options = {});
  /// Handles failures as run() does, for a program that started the job itself. While the job lives, an uncaught
  /// exception on this thread ends the program as in run(). A call of exit() is reported, as in run(). Only one job at
  /// a time may do so.
  void end_with_uncaught();
  /// From now on, appends this explanation to uncaught exceptions of LibTorch or the program on this rank. An empty
  /// text ends this.
  void explain_failures(const std::string& explanation);

  int rank() const;
  int size() const;
  int local_rank() const;  // number among the ranks of this node
  int local_size() const;
  int node() const;  // nodes are numbered by their lowest rank
  int nodes() const;
  int cores() const;                  // this rank's share of its node's cores (base/core_share.h)
  const CoreSet& node_cores() const;  // cores that any rank of this node may run on
  std::string node_name() const;

  /// Replaces the options of communicator(), because the configuration is read after the start. Call it before
  /// communicator() is first used.
  void configure(const MpiOptions& options);
  /// The communicator of all ranks. The first call is collective.
  Communicator& communicator();

  /// A communicator of all ranks that exists from the start, uses messages and has a long deadline. It serves
  /// agreements (comm/agreement/) before the configuration is known, and work that one rank does for all.
  Communicator& control();

 private:
  struct Impl;
  explicit Job(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace zero
