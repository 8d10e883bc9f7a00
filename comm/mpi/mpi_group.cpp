#include "comm/mpi/mpi_group.h"

#include <mpi.h>

#include "base/error.h"

namespace zero {

MpiGroup::MpiGroup(std::shared_ptr<PointToPoint> messages, const MpiOptions& options)
    : Communicator(messages->rank(), messages->size()),
      messages_(std::move(messages)),
      options_(options),
      failures_(messages_->handle()) {}

std::byte* MpiGroup::bytes_of(const at::Tensor& tensor) {
  ZERO_CHECK(tensor.is_cpu(), "the MPI backend takes CPU tensors");
  return static_cast<std::byte*>(tensor.data_ptr());
}

// Each look lets MPI answer a receiver, or send a part of a long message.
void MpiGroup::poll() {
  constexpr int looks = 8;
  for (int look = 0; look < looks && !sent_.empty(); ++look)
    if (messages_->is_idle(PointToPoint::outbox)) sent_.clear();
}

void MpiGroup::do_send(const at::Tensor& tensor, int to, const CallRecord& call) {
  messages_->begin(call);
  poll();
  messages_->send(PointToPoint::outbox, bytes_of(tensor), tensor.nbytes(), to);
  sent_.push_back(tensor);
}

void MpiGroup::do_recv(const at::Tensor& tensor, int from, const CallRecord& call) {
  messages_->begin(call);
  messages_->recv(0, bytes_of(tensor), tensor.nbytes(), from);
  messages_->finish(0);
}

void MpiGroup::do_settle(const CallRecord& call) {
  messages_->begin(call);
  messages_->finish(PointToPoint::outbox);
  sent_.clear();
}

std::unique_ptr<Communicator> MpiGroup::do_split(const std::vector<int>& ranks, const CallRecord& call) {
  do_barrier(call);  // MPI's own waits have no deadline: start them only when all ranks are here
  const auto [color, key] = place_in(ranks);
  MPI_Comm part = MPI_COMM_NULL;
  check_mpi(MPI_Comm_split(MPI_Comm_f2c(messages_->handle()), color, key, &part), "MPI_Comm_split");
  return make_mpi_group(std::make_shared<PointToPoint>(MPI_Comm_c2f(part), options_), options_);
}

}  // namespace zero
