#pragma once
// Point-to-point messages of a group of MPI ranks. They have any length, start without waiting, and finish within a
// deadline.
#include <cstddef>
#include <memory>
#include <string>

#include "comm/communicator.h"
#include "comm/mpi/mpi_communicator.h"

namespace zero {

class PointToPoint {
 public:
  /// The Fortran handle (MPI_Comm_c2f) names the group, so that no header needs MPI's. Takes ownership of the group and
  /// frees it at the end.
  PointToPoint(int handle, const MpiOptions& options);
  ~PointToPoint();

  int rank() const;
  int size() const;
  /// The name of rank r of the group in messages: "rank 5", its rank in the job (MpiOptions::named_rank), and its node
  /// if there are several.
  std::string name(int r) const;
  int handle() const;

  /// Starts a call. Its kind, type and tag travel in the tag of MPI's messages.
  void begin(const CallRecord& call);
  /// Lanes 0 and 1 can be in flight at once, so that one message travels while another is processed. The outbox is a
  /// third lane, for messages that nobody waits for. The memory must stay valid until finish(). Empty messages are sent
  /// too, so that a rank with another expectation notices.
  static constexpr int outbox = 2;
  void send(int lane, const void* data, std::size_t bytes, int to);
  void recv(int lane, void* data, std::size_t bytes, int from);
  /// Waits for everything started on the lane. Throws an Error that names the call if a message belongs to another
  /// call, which it names too, or has an unexpected length. It also throws if MPI fails, and at the deadline, with the
  /// missing ranks.
  void finish(int lane);
  /// True if everything started on the lane has arrived. Does not wait.
  bool is_idle(int lane);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Throws Error with MPI's own message unless `code` is MPI_SUCCESS.
void check_mpi(int code, const char* what);

}  // namespace zero
