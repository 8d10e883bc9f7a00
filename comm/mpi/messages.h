#pragma once
// Point-to-point messages of a group of MPI ranks: any length, started without waiting, finished within a deadline.
#include <cstddef>
#include <memory>
#include <string>

#include "comm/communicator.h"
#include "comm/mpi/mpi_communicator.h"

namespace zero {

class Messages {
 public:
  /// A group is named by its Fortran handle (MPI_Comm_c2f), so that no header needs MPI's. Takes the group over and
  /// frees it at the end.
  Messages(int handle, const MpiOptions& options);
  ~Messages();

  int rank() const;
  int size() const;
  /// Of rank r of the group, as people know it: "rank 5", its rank in the job (MpiOptions::named_rank), and its node where there are several.
  std::string name(int r) const;
  int handle() const;

  /// What follows belongs to this call. Its kind, type and tag go along, in the tag of MPI's messages.
  void begin(const CallRecord& call);
  /// Two lanes can be under way at once, so that one message travels while another is worked on. The memory must stay
  /// until finish(). Empty messages travel, too: a rank that expects something else learns of it.
  void send(int lane, const void* data, std::size_t bytes, int to);
  void recv(int lane, void* data, std::size_t bytes, int from);
  /// Waits for all that was started on the lane. Throws an Error that names the call when a message is of another call (what
  /// it is of is named too) or of another length than expected, when MPI fails, or at the deadline, with the ranks that are
  /// missing.
  void finish(int lane);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Throws Error with MPI's own words unless `code` is MPI_SUCCESS.
void check_mpi(int code, const char* what);

}  // namespace zero
