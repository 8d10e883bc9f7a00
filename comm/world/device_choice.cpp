#include "comm/world/device_choice.h"

#include <ATen/ATen.h>
#include <ATen/detail/CUDAHooksInterface.h>

#include "base/error.h"
#include "base/log.h"
#include "comm/object_collectives.h"

namespace zero {

c10::Device choose_device(const DeviceRequest& request, int local_rank, int local_size, int gpus, bool has_cuda) {
  const int places = gpus * request.ranks_per_gpu;
  if (request.device == "cpu") return c10::Device(at::kCPU);
  if (request.device == "auto" && (!has_cuda || places < local_size)) return c10::Device(at::kCPU);
  if (!has_cuda)
    throw InputError(
        "training.device = \"cuda\": this program was built without CUDA. Build the cuda preset (scripts/build cuda), or set it to \"cpu\"");
  if (gpus == 0)
    throw InputError(
        "training.device = \"cuda\": no usable GPU was found. nvidia-smi shows what the driver sees and CUDA_VISIBLE_DEVICES what this "
        "process may use; or set it to \"cpu\"");
  if (places < local_size)
    throw InputError(text("training.device = \"cuda\": ", local_size, " ranks on a node with ", gpus,
                          gpus == 1 ? " GPU" : " GPUs", " and comm.ranks_per_gpu = ", request.ranks_per_gpu,
                          ". Start at most ", places, " ranks on each node (mpirun --map-by ppr:", places,
                          ":node), and let each see all GPUs of its node (srun --gpu-bind=none)"));
  return c10::Device(at::kCUDA, static_cast<c10::DeviceIndex>(local_rank / request.ranks_per_gpu));
}

c10::Device choose_device(const DeviceRequest& request, int local_rank, int local_size) {
  const bool has_cuda = at::detail::getCUDAHooks().hasCUDA() || at::globalContext().hasCUDART();
  const int gpus = has_cuda ? at::detail::getCUDAHooks().deviceCount() : 0;
  const c10::Device device = choose_device(request, local_rank, local_size, gpus, has_cuda);
  if (request.device == "auto" && device.is_cpu() && gpus > 0 && local_rank == 0)
    log_warning("training.device = \"auto\" takes the CPU: this node's ", local_size, " ranks see ", gpus,
                gpus == 1 ? " GPU" : " GPUs",
                ". Start one rank for each GPU, and let each see all GPUs of its node (srun --gpu-bind=none)");
  return device;
}

void check_same_device_type(c10::Device device, Communicator& host) {
  const std::vector<std::int64_t> types = all_gather_number(host, static_cast<std::int64_t>(device.type()));
  for (std::size_t r = 1; r < types.size(); ++r)
    if (types[r] != types[0])
      throw InputError(text("training.device = \"auto\": rank 0 would compute on the ",
                            c10::DeviceTypeName(c10::DeviceType(types[0])), " and rank ", r, " on the ",
                            c10::DeviceTypeName(c10::DeviceType(types[r])),
                            ". Set it to \"cpu\", or to \"cuda\" to learn what that node lacks"));
}

}  // namespace zero
