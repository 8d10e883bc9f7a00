#include "comm/world/device_backends.h"

#include <algorithm>
#include <iterator>

#include "base/error.h"
#include "base/log.h"
#include "comm/decorators/staged_communicator.h"
#include "comm/nccl/nccl_communicator.h"

namespace zero {
namespace {

bool nccl_serves(c10::Device device, const DeviceCommunicatorOptions& options) {
  return device.is_cuda() &&
         (options.ranks_per_gpu == 1 || (options.ranks_per_gpu == 2 && nccl_allows_ranks_on_one_gpu()));
}

std::unique_ptr<Communicator> make_nccl(Communicator& host, c10::Device device,
                                        const DeviceCommunicatorOptions& options) {
  if (options.ranks_per_gpu > 1 && host.rank() == 0)
    log_warning("comm.ranks_per_gpu = 2: NCCL shares each GPU. This shows correctness, not speed");
  return make_nccl_communicator(host, device.index(), {options.deadline, 8, options.ranks_per_gpu});
}

bool staging_serves(c10::Device, const DeviceCommunicatorOptions&) { return true; }

std::unique_ptr<Communicator> make_staged(Communicator& host, c10::Device device,
                                          const DeviceCommunicatorOptions& options) {
  if (host.rank() == 0)
    log_warning("comm.ranks_per_gpu = ", options.ranks_per_gpu,
                ": collectives are staged over host memory through MPI, since NCCL shares a GPU from 2.30 "
                "on and between two ranks only. This shows correctness, not speed");
  return std::make_unique<StagedCommunicator>(host.duplicate(), device);
}

constexpr DeviceBackend backends[] = {
    {"nccl", nccl_serves, make_nccl},
    {"staged", staging_serves, make_staged},
};

}  // namespace

const DeviceBackend& backend_for(c10::Device device, const DeviceCommunicatorOptions& options) {
  ZERO_CHECK(!device.is_cpu(), "the CPU's tensors go through the host's communicator");
  return *std::find_if(std::begin(backends), std::end(backends),
                       [&](const DeviceBackend& backend) { return backend.serves(device, options); });
}

std::unique_ptr<Communicator> make_device_communicator(Communicator& host, c10::Device device,
                                                       const DeviceCommunicatorOptions& options) {
  if (device.is_cpu()) return nullptr;
  return backend_for(device, options).make(host, device, options);
}

}  // namespace zero
