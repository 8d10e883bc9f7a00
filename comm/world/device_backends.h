#pragma once
// DeviceBackend: the backend of a device's collectives. No code above this room selects one: a new backend is a row of
// the table in device_backends.cpp.
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
  /// True if it serves this device with these options. If the build lacks it, make() throws with the remedy: a run
  /// never silently continues with a slower one.
  bool (*serves)(c10::Device device, const DeviceCommunicatorOptions& options);
  /// A communicator of the ranks of `host`, which must outlive the result. Collective.
  std::unique_ptr<Communicator> (*make)(Communicator& host, c10::Device device,
                                        const DeviceCommunicatorOptions& options);
};

/// The first backend of the table that serves the device, which is not the CPU: NCCL, or staging over host memory if
/// NCCL cannot.
const DeviceBackend& backend_for(c10::Device device, const DeviceCommunicatorOptions& options = {});

/// A communicator of the ranks of `host` for tensors of the device. The log reports a backend that is slow or only for
/// tests. Null for the CPU: `host` itself does it. Collective.
std::unique_ptr<Communicator> make_device_communicator(Communicator& host, c10::Device device,
                                                       const DeviceCommunicatorOptions& options = {});

}  // namespace zero
