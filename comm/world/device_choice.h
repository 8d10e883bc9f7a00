#pragma once
// Chooses a rank's device.
#include <c10/core/Device.h>

#include <string>

#include "comm/communicator.h"

namespace zero {

struct DeviceRequest {
  std::string device = "auto";  // auto | cpu | cuda; auto uses GPUs if there are enough for all ranks
  int ranks_per_gpu = 1;
};

/// The device for rank `local_rank` of the `local_size` ranks on its node. Throws InputError for "cuda" in a build
/// without CUDA or on a machine without a usable GPU. Also throws if there are more ranks than ranks_per_gpu times the
/// number of GPUs.
c10::Device choose_device(const DeviceRequest& request, int local_rank, int local_size);

/// Makes the same choice for a machine with `gpus` GPUs. `has_cuda` says whether the build has CUDA.
c10::Device choose_device(const DeviceRequest& request, int local_rank, int local_size, int gpus, bool has_cuda);

/// Checks that all ranks have the same kind of device. They differ if "auto" found GPUs on some nodes only. The
/// InputError names two ranks that differ. Collective.
void check_same_device_type(c10::Device device, Communicator& host);

}  // namespace zero
