#pragma once
// DeviceBackend: the backend for a device's collectives. Only this folder selects one: a new backend is a row of the
// table in device_backends.cpp.
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
  /// True if the backend serves this device with these options. If it is not compiled in, make() throws with the
  /// remedy: a run never silently falls back to a slower backend.
  bool (*serves)(c10::Device device, const DeviceCommunicatorOptions& options);
  /// Makes a communicator of the ranks of `host`, which must outlive the result. Collective.
  std::unique_ptr<Communicator> (*make)(Communicator& host, c10::Device device,
                                        const DeviceCommunicatorOptions& options);
};

/// The first backend of the table that serves the device, which must not be the CPU. This is NCCL, or staging through
/// host memory if NCCL cannot serve it.
const DeviceBackend& backend_for(c10::Device device, const DeviceCommunicatorOptions& options = {});

/// Makes a communicator of the ranks of `host` for tensors on the device. Logs if the backend is slow or only for
/// tests. Returns null for the CPU, which `host` serves itself. Collective.
std::unique_ptr<Communicator> make_device_communicator(Communicator& host, c10::Device device,
                                                       const DeviceCommunicatorOptions& options = {});

}  // namespace zero
