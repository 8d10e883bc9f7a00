#pragma once
// DeviceBackend: who carries out the collectives of a device's tensors. Nothing above this room asks for one: a new
// backend is a row of the table in device_backends.cpp.
#include <c10/core/Device.h>

#include <chrono>
#include <memory>

#include "comm/communicator.h"

namespace zero {

struct DeviceCommunicatorOptions {
  std::chrono::duration<double> deadline{300};  // longest wait for other ranks in one call
  int ranks_per_gpu = 1;
};

struct DeviceBackend {
  const char* name;
  /// Whether it is the one for this device and these options. Where the build lacks it, make() throws with the remedy:
  /// a run does not go on with a slower one unasked.
  bool (*serves)(c10::Device device, const DeviceCommunicatorOptions& options);
  /// The ranks of `host`, which must outlive the result. Collective.
  std::unique_ptr<Communicator> (*make)(Communicator& host, c10::Device device,
                                        const DeviceCommunicatorOptions& options);
};

/// The first of the table that serves the device, which is not the CPU: NCCL, or staging over host memory where NCCL
/// cannot.
const DeviceBackend& backend_for(c10::Device device, const DeviceCommunicatorOptions& options = {});

/// The ranks of `host` for tensors of the device, by its backend; what is slow or for tests only is told in the log.
/// Null for the CPU: `host` itself does it. Collective.
std::unique_ptr<Communicator> make_device_communicator(Communicator& host, c10::Device device,
                                                       const DeviceCommunicatorOptions& options = {});

}  // namespace zero
