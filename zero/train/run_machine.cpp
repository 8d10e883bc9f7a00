#include "zero/train/run_machine.h"

#include <ATen/Parallel.h>

#include <cstdlib>
#include <thread>

#include "base/error.h"
#include "base/log.h"
#include "comm/world/device_choice.h"

namespace zero {

c10::Device device_of(const Config& config, const Job& job, int ranks_here) {
  const c10::Device device =
      choose_device({config.training.device, int(config.comm.ranks_per_gpu)}, job.local_rank(), ranks_here);
  if (device.is_cuda() && config.offload.parameters != "none" && config.offload.optimizer == "none")
    throw InputError(
        config.where("offload.parameters") +
        ": on a GPU the weights live on the host only where the optimizer does; set offload.optimizer too");
  return device;
}

void set_threads(const Job& job, c10::Device device) {
  if (std::getenv("OMP_NUM_THREADS")) return;
  at::set_num_threads(job.cores());
  const int cores = int(std::thread::hardware_concurrency());
  if (job.rank() == 0 && device.is_cpu() && job.cores() == 1 && cores >= 2 * job.local_size())
    log_warning("this rank may use one of the ", cores,
                " cores of its node. mpirun --bind-to none, or srun --cpus-per-task=N, gives ranks more");
}

MpiOptions mpi_options_of(const Config& config) {
  MpiOptions options;
  options.deadline = std::chrono::duration<double>(config.comm.deadline_seconds);
  options.shared_memory = config.comm.shared_memory == "on"    ? SharedMemory::on
                          : config.comm.shared_memory == "off" ? SharedMemory::off
                                                               : SharedMemory::automatic;
  return options;
}

}  // namespace zero
