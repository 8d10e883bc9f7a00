#include "comm/mpi/mpi_communicator.h"

#include <ATen/core/Tensor.h>
#include <mpi.h>

#include <array>
#include <cstring>
#include <optional>

#include "base/error.h"
#include "base/log.h"
#include "comm/mpi/message_transport.h"
#include "comm/mpi/mpi_failure_reports.h"
#include "comm/mpi/shared_transport.h"
#include "comm/sum_tree.h"

namespace zero {
namespace {

/// Group of one: nothing travels.
class LoneTransport final : public Transport {
 public:
  void all_gather(std::byte* full, const std::byte* shard, std::size_t bytes, const CallRecord&) override {
    if (full != shard && bytes) std::memcpy(full, shard, bytes);
  }
  void reduce_scatter(std::byte* shard, const std::byte* full, std::int64_t numel, const ReduceTypes& types,
                      const CallRecord&) override {
    const void* input = full;
    sum_tree({{&input, 1}, types.in}, {shard, types.out, types.accumulate}, numel, types.sum);
  }
  void all_reduce(std::byte*, std::int64_t, const ReduceTypes&, const CallRecord&) override {}
  void broadcast(std::byte*, std::size_t, int, const CallRecord&) override {}
  void barrier(const CallRecord&) override {}
};

std::byte* bytes_of(const at::Tensor& tensor) {
  ZERO_CHECK(tensor.is_cpu(), "the MPI backend takes CPU tensors");
  return static_cast<std::byte*>(tensor.data_ptr());
}

bool all_agree(MPI_Comm comm, bool mine) {
  int in = mine, out = 0;
  check_mpi(MPI_Allreduce(&in, &out, 1, MPI_INT, MPI_MIN, comm), "MPI_Allreduce");
  return out != 0;
}

bool on_one_node(MPI_Comm comm) {
  MPI_Comm node = MPI_COMM_NULL;
  check_mpi(MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node), "MPI_Comm_split_type");
  int here = 0, all = 0;
  MPI_Comm_size(node, &here);
  MPI_Comm_size(comm, &all);
  MPI_Comm_free(&node);
  return all_agree(comm, here == all);
}

/// The segment of the group, or nothing and the reason, alike on all ranks.
std::optional<SharedSegment> share(MPI_Comm comm, std::size_t bytes, std::string& reason) {
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  std::array<char, 64> name{};
  std::array<char, 256> words{};
  std::optional<SharedSegment> segment;
  const auto attempt = [&](auto make) {
    try {
      segment.emplace(make());
    } catch (const Error& e) {
      std::strncpy(words.data(), e.what(), words.size() - 1);
    }
  };
  if (rank == 0) attempt([&] { return SharedSegment::create(bytes); });
  if (segment) std::strncpy(name.data(), segment->name().c_str(), name.size() - 1);
  check_mpi(MPI_Bcast(name.data(), name.size(), MPI_CHAR, 0, comm), "MPI_Bcast");
  if (rank != 0 && name[0]) attempt([&] { return SharedSegment::open(name.data(), bytes); });
  const bool all = all_agree(comm, segment.has_value());
  if (segment) segment->unlink();
  if (all) return segment;
  int failing = 0, lowest = 0;
  MPI_Comm_size(comm, &failing);
  if (!segment && words[0]) failing = rank;
  check_mpi(MPI_Allreduce(&failing, &lowest, 1, MPI_INT, MPI_MIN, comm), "MPI_Allreduce");
  check_mpi(MPI_Bcast(words.data(), words.size(), MPI_CHAR, lowest, comm), "MPI_Bcast");
  reason = words.data();
  return std::nullopt;
}

std::unique_ptr<Transport> make_transport(Messages& messages, const MpiOptions& options) {
  if (messages.size() == 1) return std::make_unique<LoneTransport>();
  if (options.shared_memory == SharedMemory::off) return std::make_unique<MessageTransport>(messages);
  const MPI_Comm comm = MPI_Comm_f2c(messages.handle());
  std::string reason = "its ranks are on several nodes";
  if (on_one_node(comm)) {
    const WindowShape shape{messages.size(), options.slots, options.slot_bytes};
    if (auto segment = share(comm, shape.bytes(), reason))
      return std::make_unique<SharedTransport>(
          SharedWindow(std::move(*segment), shape, messages.rank(), options.deadline));
    if (options.shared_memory == SharedMemory::automatic && messages.rank() == 0)
      log_warning("collectives between ", messages.size(), " ranks of this node go by slower messages: ", reason);
  }
  if (options.shared_memory == SharedMemory::on)
    throw InputError(text("comm.shared_memory = \"on\" cannot be honoured for a group of ", messages.size(),
                          " ranks: ", reason, "; mend that, or set it to \"auto\""));
  return std::make_unique<MessageTransport>(messages);
}

class MpiCommunicator final : public Communicator {
 public:
  MpiCommunicator(std::unique_ptr<Messages> messages, const MpiOptions& options)
      : Communicator(messages->rank(), messages->size()),
        options_(options),
        messages_(std::move(messages)),
        transport_(make_transport(*messages_, options)),
        failures_(messages_->handle()) {}

  CollectiveMemory& memory() override { return memory_; }
  FailureHandling& failures() override { return failures_; }

 private:
  void do_all_gather(const at::Tensor& full, const at::Tensor& shard, const CallRecord& call) override {
    transport_->all_gather(bytes_of(full), bytes_of(shard), shard.nbytes(), call);
  }
  void do_reduce_scatter(const at::Tensor& shard, const at::Tensor& full, ReduceOptions options,
                         const CallRecord& call) override {
    const ReduceTypes types{full.scalar_type(), shard.scalar_type(), options.sum_type, options.accumulate};
    transport_->reduce_scatter(bytes_of(shard), bytes_of(full), shard.numel(), types, call);
  }
  void do_all_reduce(const at::Tensor& tensor, ReduceOptions options, const CallRecord& call) override {
    transport_->all_reduce(bytes_of(tensor), tensor.numel(),
                           {tensor.scalar_type(), tensor.scalar_type(), options.sum_type, false}, call);
  }
  void do_broadcast(const at::Tensor& tensor, int root, const CallRecord& call) override {
    transport_->broadcast(bytes_of(tensor), tensor.nbytes(), root, call);
  }
  void do_send(const at::Tensor& tensor, int to, const CallRecord& call) override {
    messages_->send(0, bytes_of(tensor), tensor.nbytes(), to);
    messages_->finish(0, call);
  }
  void do_recv(const at::Tensor& tensor, int from, const CallRecord& call) override {
    messages_->recv(0, bytes_of(tensor), tensor.nbytes(), from);
    messages_->finish(0, call);
  }
  void do_barrier(const CallRecord& call) override { transport_->barrier(call); }

  std::unique_ptr<Communicator> do_split(int color, int key, const CallRecord& call) override {
    transport_->barrier(call);  // MPI's own waits know no deadline: enter them only when all are here
    MPI_Comm part = MPI_COMM_NULL;
    check_mpi(MPI_Comm_split(MPI_Comm_f2c(messages_->handle()), color, key, &part), "MPI_Comm_split");
    return std::make_unique<MpiCommunicator>(std::make_unique<Messages>(MPI_Comm_c2f(part), options_.deadline),
                                             options_);
  }

  MpiOptions options_;
  std::unique_ptr<Messages> messages_;
  std::unique_ptr<Transport> transport_;
  TorchMemory memory_;
  MpiFailures failures_;
};

}  // namespace

std::unique_ptr<Communicator> make_mpi_communicator(int handle, const MpiOptions& options) {
  MPI_Comm own = MPI_COMM_NULL;
  check_mpi(MPI_Comm_dup(MPI_Comm_f2c(handle), &own), "MPI_Comm_dup");
  return std::make_unique<MpiCommunicator>(std::make_unique<Messages>(MPI_Comm_c2f(own), options.deadline), options);
}

int mpi_world_handle() { return MPI_Comm_c2f(MPI_COMM_WORLD); }

}  // namespace zero
