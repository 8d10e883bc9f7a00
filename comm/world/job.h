#pragma once
// The processes of one job: MPI's start and end, who is where, how failures end the job. Owned by main; no globals.
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/core_share.h"
#include "comm/communicator.h"
#include "comm/mpi/mpi_communicator.h"

namespace zero {

struct JobOptions {
  /// Whose ranks are the job: the handle (MPI_Comm_c2f) of a communicator of a program that has started MPI; none: all.
  std::optional<int> communicator;
  MpiOptions mpi;                                        // of communicator()
  std::chrono::duration<double> control_deadline{3600};  // of control(): one rank may read or write for all others
  std::chrono::duration<double> grace{
      1};  // a failing rank waits so long for the others to fail too, then aborts the job
};

class Job {
 public:
  /// Starts MPI, unless the program has, which then ends it too. Without mpirun the job is one rank. One world per process.
  /// InputError where a launcher started several tasks and MPI knows of this one alone, where MPI has ended, and on a
  /// thread that may not call it.
  static Job start(JobOptions options = {});
  Job(Job&&) noexcept;
  Job& operator=(Job&&) noexcept;
  /// Ends MPI where the job started it and has not ended yet. Communicators made by split() may live longer, but not be used.
  ~Job();

  /// What main() of every program does: starts the job, runs the body, returns the exit code that all ranks agreed
  /// on: the cause's where ranks failed (comm/outcome.h), else the largest that a body returned. What all ranks threw,
  /// by an agreement or each for itself, is printed once, by rank 0. What only some threw is printed by them with their
  /// rank, and ends the job at once, everywhere.
  static int run(const std::function<int(Job&)>& body, JobOptions options = {});
  /// The same for a program that started the job itself: from now on, and while the job lives, what this thread throws and
  /// nobody catches ends the program as run() does. Of one job at a time. An exit() meanwhile is told of, as in run().
  void end_with_uncaught();
  /// From now on added to what LibTorch or the program throws and nobody catches on this rank; empty: nothing.
  void explain_failures(const std::string& explanation);

  int rank() const;
  int size() const;
  int local_rank() const;  // among the ranks of this node
  int local_size() const;
  int node() const;  // nodes are numbered by their lowest rank
  int nodes() const;
  int cores() const;                  // of the node that this rank may count as its own (base/core_share.h)
  const CoreSet& node_cores() const;  // that any rank of this node may run on
  std::string node_name() const;

  /// Other options for communicator(), before its first use: the configuration is read after the start.
  void configure(const MpiOptions& options);
  /// All ranks. The first call is collective.
  Communicator& communicator();

  /// All ranks, by messages of long patience, from the start: for agreements (comm/agreement.h) before the
  /// configuration is known, and while one rank reads or writes for all.
  Communicator& control();

 private:
  struct Impl;
  explicit Job(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace zero
