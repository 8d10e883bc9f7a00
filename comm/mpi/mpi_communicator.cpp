#include "comm/mpi/mpi_communicator.h"

#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <optional>

#include "base/error.h"
#include "base/log.h"
#include "comm/agreement/agreement.h"
#include "comm/mpi/message_communicator.h"
#include "comm/mpi/shared_memory_communicator.h"
#include "comm/object_collectives.h"
#include "comm/self_communicator.h"

namespace zero {
namespace {

/// Equal on all ranks.
bool on_one_node(const PointToPoint& messages) {
  MPI_Comm node = MPI_COMM_NULL;
  check_mpi(MPI_Comm_split_type(MPI_Comm_f2c(messages.handle()), MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node),
            "MPI_Comm_split_type");
  int here = 0;
  MPI_Comm_size(node, &here);
  MPI_Comm_free(&node);
  return here == messages.size();
}

/// A duplicate group, so that its messages cannot match those of the original.
std::shared_ptr<PointToPoint> duplicate(int handle, const MpiOptions& options) {
  MPI_Comm own = MPI_COMM_NULL;
  check_mpi(MPI_Comm_dup(MPI_Comm_f2c(handle), &own), "MPI_Comm_dup");
  return std::make_shared<PointToPoint>(MPI_Comm_c2f(own), options);
}

/// For slow work: creating the segment must not hit a short deadline of collectives.
std::unique_ptr<Communicator> make_patient(const PointToPoint& messages, MpiOptions options) {
  options.deadline = std::max(options.deadline, std::chrono::duration<double>(60));
  return std::make_unique<MessageCommunicator>(duplicate(messages.handle(), options), options);
}

/// The group's segment, on all ranks or on none. Collective.
SharedSegment share(Communicator& group, std::size_t bytes) {
  std::optional<SharedSegment> segment;
  on_first(group, [&] { segment.emplace(SharedSegment::create(bytes)); });
  const std::string name = broadcast_text(group, segment ? segment->name() : "", 0);
  all_or_none(group, [&] {
    if (!segment) segment.emplace(SharedSegment::open(name, bytes));
  });
  if (group.rank() == 0) segment->unlink();
  return std::move(*segment);
}

std::unique_ptr<Communicator> make_shared_memory(std::shared_ptr<PointToPoint> messages, const MpiOptions& options,
                                                 Communicator& patient) {
  const WindowShape shape{messages->size(), options.slots, options.slot_bytes};
  std::vector<std::string> names;
  for (int r = 0; r < messages->size(); ++r) names.push_back(messages->name(r));
  SharedWindow window(share(patient, shape.bytes()), shape, messages->rank(), std::move(names), options.deadline);
  return std::make_unique<SharedMemoryCommunicator>(std::move(messages), options, std::move(window));
}

}  // namespace

std::unique_ptr<Communicator> make_mpi_group(std::shared_ptr<PointToPoint> messages, const MpiOptions& options) {
  const int ranks = messages->size();
  if (ranks == 1) return std::make_unique<SelfCommunicator>();
  if (options.shared_memory == SharedMemory::off)
    return std::make_unique<MessageCommunicator>(std::move(messages), options);
  std::string reason = "its ranks are on several nodes";
  if (on_one_node(*messages)) {
    std::unique_ptr<Communicator> shared;
    const std::unique_ptr<Communicator> patient = make_patient(*messages, options);
    const auto failure = agreed_failure_of([&] { shared = make_shared_memory(messages, options, *patient); });
    if (!failure) return shared;
    reason = *failure;
    if (options.shared_memory == SharedMemory::automatic && messages->rank() == 0)
      log_warning("collectives between ", ranks, " ranks of this node go by slower messages: ", reason);
  }
  if (options.shared_memory == SharedMemory::on)
    throw InputError(text("comm.shared_memory = \"on\" cannot be honoured for a group of ", ranks, " ranks: ", reason,
                          "; mend that, or set it to \"auto\""));
  return std::make_unique<MessageCommunicator>(std::move(messages), options);
}

std::unique_ptr<Communicator> make_mpi_communicator(int handle, const MpiOptions& options) {
  return make_mpi_group(duplicate(handle, options), options);
}

int mpi_world_handle() { return MPI_Comm_c2f(MPI_COMM_WORLD); }

}  // namespace zero
