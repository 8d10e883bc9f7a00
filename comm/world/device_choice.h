#pragma once
// Which device a rank computes on.
#include <c10/core/Device.h>

#include <string>

#include "comm/communicator.h"

namespace zero {

struct DeviceRequest {
  std::string device = "auto";  // auto | cpu | cuda; auto: a GPU for each rank where there are enough, else the CPU
  int ranks_per_gpu = 1;
};

/// The device of the rank that is number `local_rank` of `local_size` on its node. Throws InputError for "cuda" in a
/// build without CUDA, on a machine without a usable GPU, and with more ranks than ranks_per_gpu times the GPUs.
c10::Device choose_device(const DeviceRequest& request, int local_rank, int local_size);

/// As above on a machine with `gpus` GPUs: the rule alone, for a build with (`has_cuda`) or without CUDA.
c10::Device choose_device(const DeviceRequest& request, int local_rank, int local_size, int gpus, bool has_cuda);

/// One kind of device on all ranks; InputError naming two ranks that differ ("auto" saw a GPU on some nodes only).
/// Collective.
void check_same_device_type(c10::Device device, Communicator& host);

}  // namespace zero
