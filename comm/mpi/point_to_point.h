#pragma once
// Point-to-point messages in a group of MPI ranks. A message may have any length, starts without waiting, and must
// finish within a deadline.
#include <cstddef>
#include <memory>
#include <string>

#include "comm/communicator.h"
#include "comm/mpi/mpi_communicator.h"

namespace zero {

class PointToPoint {
 public:
  /// The Fortran handle (MPI_Comm_c2f) names the group, so that headers need not include mpi.h. Takes ownership of the
  /// group and frees it in the destructor.
  PointToPoint(int handle, const MpiOptions& options);
  ~PointToPoint();

  int rank() const;
  int size() const;
  /// The name of the group's rank r for messages. It is the rank's number in the job (MpiOptions::named_rank), such as
  /// "rank 5", followed by the node if there are several.
  std::string name(int r) const;
  int handle() const;

  /// Starts a call. The call's kind, type and tag travel in the tags of its MPI messages.
  void begin(const CallRecord& call);
  /// Lanes 0 and 1 can be in flight at once, so one message travels while another is processed. The outbox is a third
  /// lane, for messages whose call does not wait for them. The memory must stay valid until finish(). Empty messages
  /// are sent too, so that a rank that expects another length notices.
  static constexpr int outbox = 2;
  void send(int lane, const void* data, std::size_t bytes, int to);
  void recv(int lane, void* data, std::size_t bytes, int from);
  /// Waits for everything started on the lane. Throws an Error that names the call if a message has an unexpected
  /// length or belongs to another call. The Error then names the other call too. Also throws if MPI fails, and at the
  /// deadline; the Error then names the missing ranks.
  void finish(int lane);
  /// True if everything started on the lane has finished. Does not wait.
  bool is_idle(int lane);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Throws Error with MPI's own message unless `code` is MPI_SUCCESS.
void check_mpi(int code, const char* what);

}  // namespace zero
