#pragma once
// The processes of one job: start and end of MPI, the node of each rank, and how failures end the job. Owned by main;
// no globals.
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/core_share.h"
#include "comm/communicator.h"
#include "comm/mpi/mpi_communicator.h"

namespace zero {

struct JobOptions {
  /// The handle (MPI_Comm_c2f) of a communicator of a program that has started MPI: its ranks are the job. None: all
  /// ranks.
  std::optional<int> communicator;
  MpiOptions mpi;                                        // of communicator()
  std::chrono::duration<double> control_deadline{3600};  // of control(): one rank may read or write for all others
  std::chrono::duration<double> grace{
      1};  // a failing rank waits so long for the others to fail too, then aborts the job
};

class Job {
 public:
  /// Starts MPI, unless the program has; the program then also ends it. Without mpirun the job is one rank. One world
  /// per process. Throws InputError if MPI has ended, or if the calling thread may not call MPI. Also throws if a
  /// launcher started several tasks but MPI sees only this one.
  static Job start(JobOptions options = {});
  Job(Job&&) noexcept;
  Job& operator=(Job&&) noexcept;
  /// Ends MPI if the job started it and it has not ended yet. Communicators made by split() may live longer, but must
  /// not be used.
  ~Job();

  /// main() of every program calls this. It starts the job, runs the body, and returns the exit code on which all ranks
  /// agreed. If ranks failed, that is the cause's code (comm/outcome.h), else the largest that a body returned. Rank 0
  /// prints an exception that all ranks threw, by an agreement or individually, once. Other exceptions are printed by
  /// their ranks, and end the job at once, everywhere.
  static int run(const std::function<int(Job&)>& body, JobOptions options = {});
  /// Does the same for a program that started the job itself. From now on, while the job lives, an uncaught exception
  /// of this thread ends the program as run() does. Only one job at a time. An exit() meanwhile is reported, as in
  /// run().
  void end_with_uncaught();
  /// Appends an explanation to uncaught exceptions of LibTorch or the program on this rank, from now on. Empty: none.
  void explain_failures(const std::string& explanation);

  int rank() const;
  int size() const;
  int local_rank() const;  // among the ranks of this node
  int local_size() const;
  int node() const;  // nodes are numbered by their lowest rank
  int nodes() const;
  int cores() const;                  // this rank's share of its node's cores (base/core_share.h)
  const CoreSet& node_cores() const;  // cores that any rank of this node may run on
  std::string node_name() const;

  /// Sets other options for communicator(), before its first use: the configuration is read after the start.
  void configure(const MpiOptions& options);
  /// All ranks. The first call is collective.
  Communicator& communicator();

  /// All ranks, from the start, by messages with a long deadline. It serves agreements (comm/agreement/) before the
  /// configuration is known, and work of one rank that reads or writes for all.
  Communicator& control();

 private:
  struct Impl;
  explicit Job(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace zero
