#pragma once
// The choice of a rank's device.
#include <c10/core/Device.h>

#include <string>

#include "comm/communicator.h"

namespace zero {

struct DeviceRequest {
  std::string device = "auto";  // auto | cpu | cuda; auto: GPUs if there are enough for all ranks, else the CPU
  int ranks_per_gpu = 1;
};

/// The device of the rank that is number `local_rank` of `local_size` on its node. Throws InputError for "cuda" in a
/// build without CUDA or on a machine without a usable GPU. Also throws for more ranks than ranks_per_gpu times the
/// GPUs.
c10::Device choose_device(const DeviceRequest& request, int local_rank, int local_size);

/// The same rule on a machine with `gpus` GPUs, for a build with (`has_cuda`) or without CUDA.
c10::Device choose_device(const DeviceRequest& request, int local_rank, int local_size, int gpus, bool has_cuda);

/// Checks that all ranks have one kind of device. InputError names two ranks that differ ("auto" saw a GPU on some
/// nodes only). Collective.
void check_same_device_type(c10::Device device, Communicator& host);

}  // namespace zero
