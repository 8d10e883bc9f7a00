#include <ATen/ATen.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <nccl.h>

#include <cstring>

#include "base/cuda_check.h"
#include "base/numbers/number_types.h"
#include "comm/nccl/cuda/tree_sum.h"
#include "comm/nccl/element_types.h"
#include "comm/nccl/nccl_communicator.h"
#include "comm/nccl/nccl_library.h"
#include "comm/nccl/nccl_memory.h"
#include "comm/object_collectives.h"
#include "comm/part_offsets.h"

namespace zero {
namespace {

/// Up to this many elements, an all_reduce gathers and sums along the tree.
constexpr std::int64_t small = 1 << 16;

char* bytes_of(const at::Tensor& tensor) { return static_cast<char*>(tensor.data_ptr()); }

/// Shared by all communicators of one GPU.
struct Device {
  int index;
  NcclOptions options;
  std::shared_ptr<NcclWatchdog> watchdog;
};

ncclComm* connect(Communicator& host, const Device& device) {
  ncclUniqueId id{};
  if (host.rank() == 0) check_nccl(ncclGetUniqueId(&id), "ncclGetUniqueId");
  const std::string bytes = broadcast_text(host, {id.internal, sizeof id.internal}, 0);
  std::memcpy(id.internal, bytes.data(), sizeof id.internal);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  config.maxCTAs = device.options.ranks_per_gpu > 1 ? std::min(device.options.max_ctas, 4) : device.options.max_ctas;
  check_cuda(cudaSetDevice(device.index), "cudaSetDevice");
  ncclComm_t comm = nullptr;
  int code = ncclSuccess;
  {
    std::lock_guard nccl(device.watchdog->nccl_lock());
    code = ncclCommInitRankConfig(&comm, host.size(), id, host.rank(), &config);
    if (comm) device.watchdog->watch(comm);
  }
  device.watchdog->settle(comm, code, "ncclCommInitRankConfig");
  return comm;
}

/// Issues a thread's calls between construction and destruction together. The destructor always ends the group: an open
/// one would swallow the thread's next calls.
class GroupedCalls {
 public:
  GroupedCalls() { check_nccl(ncclGroupStart(), "ncclGroupStart"); }
  ~GroupedCalls() {
    if (open_) ncclGroupEnd();
  }
  GroupedCalls(const GroupedCalls&) = delete;
  GroupedCalls& operator=(const GroupedCalls&) = delete;
  int end() {
    open_ = false;
    return ncclGroupEnd();
  }

 private:
  bool open_ = true;
};

class NcclCommunicator final : public Communicator, private CollectiveMemory, private FailureHandling {
 public:
  NcclCommunicator(std::unique_ptr<Communicator> host, Device device)
      : Communicator(host->rank(), host->size()), host_(std::move(host)), device_(std::move(device)) {
    one_node_ = is_one_node(node_names_of_ranks(*host_));
    if (size() > 1 || device_.options.one_rank_too)
      group_ = std::make_shared<NcclGroup>(device_.watchdog, connect(*host_, device_), device_.index);
    warm_up();
  }

  CollectiveMemory& memory() override { return *this; }
  void poll() override {}
  FailureHandling& failures() override { return *this; }

 private:
  at::Tensor allocate(std::int64_t numel, at::ScalarType type) override {
    const at::Tensor block = arena_ ? arena_->take(numel, type) : at::Tensor();
    return block.defined() ? block : at::empty({numel}, at::TensorOptions().dtype(type).device(place()));
  }

  void reserve(const std::vector<std::int64_t>& blocks, std::int64_t largest_sum) override {
    if (alone()) return;
    std::vector<std::int64_t> all = blocks;
    const std::int64_t exchanged = exchanges() ? std::min(largest_sum, device_.options.chunk_bytes) : 0;
    all.push_back(exchanged);
    scratch_ = at::Tensor();
    arena_.reset();
    arena_ = std::make_shared<NcclArena>(group_, ArenaMap::bytes_for(all));
    if (rank() == 0)
      log_info("NCCL, ", size(), " ranks: one arena of ", arena_->bytes() >> 10, " KiB for ", blocks.size(), " buffers",
               exchanged ? " and the parts of sums" : "", ", registered ", arena_->registration());
    warm_up();
    scratch_ = at::Tensor();  // the warm-up's memory lies where the buffers belong
    if (exchanged) scratch_ = allocate(exchanged, at::kByte);
  }

  std::int64_t own_device_bytes() const override { return arena_ ? arena_->bytes() : 0; }
  void check() const override { device_.watchdog->check(); }
  void abandon() noexcept override { device_.watchdog->abandon(); }
  std::unique_ptr<FailureReports> make_reports() override { return host_->failures().make_reports(); }

  at::Device place() const { return at::Device(at::kCUDA, static_cast<c10::DeviceIndex>(device_.index)); }
  cudaStream_t stream() const {
    return c10::cuda::getCurrentCUDAStream(static_cast<c10::DeviceIndex>(device_.index)).stream();
  }
  bool alone() const { return !group_; }
  /// True if gradients are reduced by an exchange and a local sum along the tree.
  bool exchanges() const { return one_node_ && size() <= 127; }

  /// NCCL connects and allocates on the first call of each kind. Do that here, in the arena if there is one, rather
  /// than in the first step.
  void warm_up() {
    if (alone()) return;
    const std::int64_t part = small / size() + 1;  // all_reduce takes another path above `small`
    for (at::ScalarType type : {at::kFloat, at::kBFloat16}) {
      const at::Tensor full = allocate(part * size(), type).zero_(), shard = allocate(part, type).zero_();
      all_gather_into(full, shard, {Phase::setup});
      reduce_scatter(shard, full, {}, {Phase::setup});
      all_reduce(full, {}, {Phase::setup});
      all_reduce(shard.narrow(0, 0, 1), {}, {Phase::setup});
      broadcast(full, 0, {Phase::setup});
    }
    barrier({Phase::setup});
  }

  /// `issue` makes the NCCL calls of one record as one group.
  template <class Issue>
  void run(const CallRecord& call, Issue issue) {
    NcclWatchdog& watchdog = *device_.watchdog;
    watchdog.announce(call);
    int code = ncclSuccess;
    {
      std::lock_guard nccl(watchdog.nccl_lock());
      if (!watchdog.has_failed()) {
        GroupedCalls calls;
        issue(group_->comm(), stream());
        code = calls.end();
      }
    }
    watchdog.check();
    watchdog.settle(group_->comm(), code, name_of(call.kind));
    watchdog.follow(call, stream());
  }

  void check_place(const at::Tensor& tensor) const {
    ZERO_CHECK(tensor.is_cuda() && tensor.get_device() == device_.index,
               text("the NCCL backend takes tensors of cuda:", device_.index));
  }

  void do_all_gather(const at::Tensor& full, const at::Tensor& shard, const CallRecord& call) override {
    check_place(full);
    if (shard.numel() == 0) return;
    if (alone()) return copy(full, shard);
    run(call, [&](ncclComm_t comm, cudaStream_t stream) {
      check_nccl(
          ncclAllGather(shard.data_ptr(), full.data_ptr(), shard.numel(), nccl_type(full.scalar_type()), comm, stream),
          "ncclAllGather", comm);
    });
  }

  void do_reduce_scatter(const at::Tensor& shard, const at::Tensor& full, ReduceOptions options,
                         const CallRecord& call) override {
    check_place(full);
    if (shard.numel() == 0) return;
    if (alone()) return sum_into(shard, full.const_data_ptr(), 1, full.scalar_type(), options);
    if (exchanges()) return exchange_and_sum(shard, full, options, call);
    reduce_in_order_of_nccl(shard, full, options, call);
  }

  /// Calls f(begin, count) for chunks of `numel` elements that occupy `element_bytes` each while held.
  template <class F>
  void in_chunks(std::int64_t numel, std::int64_t element_bytes, F f) const {
    const std::int64_t most = std::max<std::int64_t>(
        8, device_.options.chunk_bytes / element_bytes / 8 * 8);  // chunks start at whole vectors
    for (std::int64_t begin = 0; begin < numel; begin += most) f(begin, std::min(most, numel - begin));
  }

  /// Within a node, each rank gets all parts of its slice in the wire type and sums them once along the tree.
  void exchange_and_sum(const at::Tensor& shard, const at::Tensor& full, const ReduceOptions& options,
                        const CallRecord& call) {
    const std::int64_t element = full.element_size(), slice = shard.numel() * element;
    in_chunks(shard.numel(), element * size(), [&](std::int64_t begin, std::int64_t count) {
      const std::int64_t part = count * element;
      const at::Tensor parts = scratch(part * size());
      run(call, [&](ncclComm_t comm, cudaStream_t stream) {
        for (int r = 0; r < size(); ++r) {
          check_nccl(ncclSend(bytes_of(full) + r * slice + begin * element, part, ncclUint8, r, comm, stream),
                     "ncclSend", comm);
          check_nccl(ncclRecv(bytes_of(parts) + r * part, part, ncclUint8, r, comm, stream), "ncclRecv", comm);
        }
      });
      sum_into(shard.narrow(0, begin, count), parts.const_data_ptr(), size(), full.scalar_type(), options);
    });
  }

  /// Between nodes, a ring crosses each link once, so NCCL does the sum, in sum_type.
  void reduce_in_order_of_nccl(const at::Tensor& shard, const at::Tensor& full, const ReduceOptions& options,
                               const CallRecord& call) {
    const at::Tensor slices = full.view({size(), shard.numel()});
    const bool direct =
        !options.accumulate && shard.scalar_type() == options.sum_type && full.scalar_type() == options.sum_type;
    const auto reduce = [&](const at::Tensor& from, const at::Tensor& to) {
      run(call, [&](ncclComm_t comm, cudaStream_t stream) {
        check_nccl(ncclReduceScatter(from.data_ptr(), to.data_ptr(), to.numel(), nccl_type(options.sum_type), ncclSum,
                                     comm, stream),
                   "ncclReduceScatter", comm);
      });
    };
    if (direct) return reduce(full, shard);
    in_chunks(shard.numel(), c10::elementSize(options.sum_type) * size(), [&](std::int64_t begin, std::int64_t count) {
      const at::Tensor wide = slices.narrow(1, begin, count).to(options.sum_type).contiguous(),
                       sum = at::empty({count}, wide.options());
      reduce(wide, sum);
      sum_into(shard.narrow(0, begin, count), sum.const_data_ptr(), 1, options.sum_type, options);
    });
  }

  void do_all_reduce(const at::Tensor& tensor, ReduceOptions options, const CallRecord& call) override {
    check_place(tensor);
    if (alone() || tensor.numel() == 0) return;
    if (tensor.numel() <= small && size() <= 127) return gather_and_sum(tensor, options, call);
    exchanges() ? exchange_sum_and_gather(tensor, options, call) : all_reduce_in_order_of_nccl(tensor, options, call);
  }

  /// Within a node: an in-place reduce_scatter and all_gather. All ranks sum the last elements, fewer than the number
  /// of ranks.
  void exchange_sum_and_gather(const at::Tensor& tensor, const ReduceOptions& options, const CallRecord& call) {
    const std::int64_t part = tensor.numel() / size(), rest = tensor.numel() % size();
    const at::Tensor whole = tensor.narrow(0, 0, part * size()), own = whole.narrow(0, rank() * part, part);
    exchange_and_sum(own, whole, options, call);
    run(call, [&](ncclComm_t comm, cudaStream_t stream) {
      check_nccl(ncclAllGather(own.data_ptr(), whole.data_ptr(), part, nccl_type(tensor.scalar_type()), comm, stream),
                 "ncclAllGather", comm);
    });
    if (rest > 0) gather_and_sum(tensor.narrow(0, part * size(), rest), options, call);
  }

  void all_reduce_in_order_of_nccl(const at::Tensor& tensor, const ReduceOptions& options, const CallRecord& call) {
    const auto reduce = [&](const at::Tensor& wide) {
      run(call, [&](ncclComm_t comm, cudaStream_t stream) {
        check_nccl(ncclAllReduce(wide.data_ptr(), wide.data_ptr(), wide.numel(), nccl_type(options.sum_type), ncclSum,
                                 comm, stream),
                   "ncclAllReduce", comm);
      });
    };
    if (tensor.scalar_type() == options.sum_type) return reduce(tensor);
    in_chunks(tensor.numel(), c10::elementSize(options.sum_type), [&](std::int64_t begin, std::int64_t count) {
      const at::Tensor chunk = tensor.narrow(0, begin, count), wide = chunk.to(options.sum_type);
      reduce(wide);
      sum_into(chunk, wide.const_data_ptr(), 1, options.sum_type, options);
    });
  }

  void gather_and_sum(const at::Tensor& tensor, const ReduceOptions& options, const CallRecord& call) {
    const at::Tensor parts = scratch(tensor.nbytes() * size());
    run(call, [&](ncclComm_t comm, cudaStream_t stream) {
      check_nccl(ncclAllGather(tensor.data_ptr(), parts.data_ptr(), tensor.nbytes(), ncclUint8, comm, stream),
                 "ncclAllGather", comm);
    });
    sum_into(tensor, parts.const_data_ptr(), size(), tensor.scalar_type(), options);
  }

  void do_broadcast(const at::Tensor& tensor, int root, const CallRecord& call) override {
    check_place(tensor);
    if (alone() || tensor.numel() == 0) return;
    run(call, [&](ncclComm_t comm, cudaStream_t stream) {
      check_nccl(ncclBroadcast(tensor.data_ptr(), tensor.data_ptr(), tensor.nbytes(), ncclUint8, root, comm, stream),
                 "ncclBroadcast", comm);
    });
  }

  /// Every rank announces the call, even without a part in it: a rank with fewer announcements counts as missing.
  void do_all_to_all(const at::Tensor& out, const std::vector<std::int64_t>& out_counts, const at::Tensor& in,
                     const std::vector<std::int64_t>& in_counts, const CallRecord& call) override {
    check_place(out);
    check_place(in);
    if (alone()) return in.numel() > 0 ? copy(out, in) : void();
    const std::int64_t element = in.element_size();
    const std::vector<std::int64_t> to_offsets = part_offsets(in_counts), from_offsets = part_offsets(out_counts);
    run(call, [&](ncclComm_t comm, cudaStream_t stream) {
      for (int r = 0; r < size(); ++r) {
        if (in_counts[r] > 0)
          check_nccl(
              ncclSend(bytes_of(in) + to_offsets[r] * element, in_counts[r] * element, ncclUint8, r, comm, stream),
              "ncclSend", comm);
        if (out_counts[r] > 0)
          check_nccl(
              ncclRecv(bytes_of(out) + from_offsets[r] * element, out_counts[r] * element, ncclUint8, r, comm, stream),
              "ncclRecv", comm);
      }
    });
  }

  void do_send(const at::Tensor& tensor, int to, const CallRecord& call) override {
    check_place(tensor);
    if (tensor.numel() == 0) return;
    run(call, [&](ncclComm_t comm, cudaStream_t stream) {
      check_nccl(ncclSend(tensor.data_ptr(), tensor.nbytes(), ncclUint8, to, comm, stream), "ncclSend", comm);
    });
  }

  void do_recv(const at::Tensor& tensor, int from, const CallRecord& call) override {
    check_place(tensor);
    if (tensor.numel() == 0) return;
    run(call, [&](ncclComm_t comm, cudaStream_t stream) {
      check_nccl(ncclRecv(tensor.data_ptr(), tensor.nbytes(), ncclUint8, from, comm, stream), "ncclRecv", comm);
    });
  }

  void do_settle(const CallRecord&) override {}  // messages are ordered on the stream, as later work is

  /// Ranks meet on the host once the device has finished this stream's work.
  void do_barrier(const CallRecord& call) override {
    device_.watchdog->announce(call);
    check_cuda(cudaStreamSynchronize(stream()), "cudaStreamSynchronize");
    device_.watchdog->check();
    host_->barrier(call.tag);
  }

  std::unique_ptr<Communicator> do_split(const std::vector<int>& ranks, const CallRecord& call) override {
    device_.watchdog->announce(call);
    return std::make_unique<NcclCommunicator>(host_->split(ranks), device_);
  }

  void copy(const at::Tensor& to, const at::Tensor& from) const {
    if (to.data_ptr() == from.data_ptr()) return;
    check_cuda(cudaMemcpyAsync(to.data_ptr(), from.const_data_ptr(), from.nbytes(), cudaMemcpyDeviceToDevice, stream()),
               "cudaMemcpyAsync");
  }

  void sum_into(const at::Tensor& output, const void* inputs, int vectors, at::ScalarType type,
                const ReduceOptions& options) const {
    cuda::tree_sum({inputs, vectors, output.numel(), number_of(type), number_of(options.sum_type), output.data_ptr(),
                    number_of(output.scalar_type()), options.accumulate},
                   stream());
  }

  /// Scratch memory that this communicator's calls reuse in turn: all run on its own stream.
  at::Tensor scratch(std::int64_t bytes) {
    if (!scratch_.defined() || scratch_.numel() < bytes) {
      if (scratch_.defined()) check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
      scratch_ = at::Tensor();
      scratch_ = allocate(bytes, at::kByte);
    }
    return scratch_;
  }

  std::unique_ptr<Communicator> host_;
  Device device_;
  bool one_node_ = true;
  std::shared_ptr<NcclGroup> group_;  // null: a single rank
  std::shared_ptr<NcclArena> arena_;  // null until reserved
  at::Tensor scratch_;
};

}  // namespace

bool nccl_allows_ranks_on_one_gpu() { return NcclLibrary::loaded().allows_ranks_on_one_gpu(); }

std::string nccl_description() { return NcclLibrary::loaded().describe(); }

std::unique_ptr<Communicator> make_nccl_communicator(Communicator& host, int device, const NcclOptions& options) {
  prepare_nccl_environment({options.ranks_per_gpu});
  const NcclLibrary library = NcclLibrary::loaded();
  check_same_nccl(library, host);
  if (options.ranks_per_gpu > 1 && !library.allows_ranks_on_one_gpu())
    throw InputError(text("comm.ranks_per_gpu = ", options.ranks_per_gpu, ": ", library.describe(),
                          " needs a GPU for each rank; from 2.30 on two may share one"));
  if (host.rank() == 0) log_info(library.describe());
  NcclOptions own = options;
  // Ranks that share a GPU may hang if it lacks resources, so check early.
  if (options.ranks_per_gpu > 1)
    own.deadline = std::min<std::chrono::duration<double>>(own.deadline, std::chrono::seconds(60));
  check_cuda(cudaSetDevice(device), "cudaSetDevice");
  FlightRecorderOptions recorder;
  recorder.nodes = node_names_of_ranks(host);
  if (!is_one_node(recorder.nodes)) recorder.reports = host.failures().make_reports();
  auto watchdog = std::make_shared<NcclWatchdog>(host, device, own.deadline, std::move(recorder));
  return std::make_unique<NcclCommunicator>(host.duplicate(), Device{device, own, std::move(watchdog)});
}

}  // namespace zero
