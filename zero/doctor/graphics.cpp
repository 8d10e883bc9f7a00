#include "zero/doctor/graphics.h"

#include <ATen/Context.h>
#include <ATen/detail/CUDAHooksInterface.h>

#include "base/error.h"
#include "base/files/lookup.h"
#include "base/log.h"
#include "base/process/child_process.h"
#include "comm/nccl/nccl_communicator.h"
#include "zero/doctor/program_output.h"

namespace zero {
namespace {

constexpr int driver_seconds = 30;
const char* const driver = "/proc/driver/nvidia/version";

std::string joined(const std::vector<std::string>& lines) {
  std::string all;
  for (const std::string& line : lines) all += (all.empty() ? "" : "; ") + line;
  return all;
}

Finding without_driver() {
  if (!is_there(driver)) return {"GPUs", Verdict::ok, "none: NVIDIA's driver is not loaded", ""};
  return {"GPUs", Verdict::unknown, text(driver, " is there, but no nvidia-smi on the PATH"),
          "install nvidia-smi; a container needs --gpus all"};
}

}  // namespace

Finding examine_gpus() {
  try {
    const std::string place = program_on_path("nvidia-smi");
    if (place.empty()) return without_driver();
    const ProgramOutput said =
        output_of({place, "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"}, driver_seconds);
    if (said.code != 0)
      return {"GPUs", Verdict::unknown, text("nvidia-smi: exit code ", said.code, ": ", joined(lines_of(said.text))),
              "look at the driver (dmesg); runs take the CPU meanwhile"};
    const std::string words = joined(lines_of(said.text));
    if (!at::detail::getCUDAHooks().hasCUDA())
      return {"GPUs", Verdict::warning, words + "; this build cannot use them",
              "build the cuda preset: scripts/build cuda"};
    const unsigned usable = static_cast<unsigned char>(at::detail::getCUDAHooks().deviceCount());
    if (usable == 0)
      return {"GPUs", Verdict::fault, words + "; CUDA can use none of them",
              "look at CUDA_VISIBLE_DEVICES, and at the driver's version, which CUDA 13 needs to be 580 or newer"};
    return {"GPUs", Verdict::ok, text(words, "; ", usable, " usable"), ""};
  } catch (const StoppedError&) {
    throw;
  } catch (const Error& error) {
    return {"GPUs", Verdict::unknown, error.what(), "run nvidia-smi"};
  }
}

Finding examine_nccl() {
  try {
    const std::string loaded = nccl_description();
    return {"NCCL", Verdict::ok, loaded.empty() ? "none: this build is for CPUs" : loaded, ""};
  } catch (const StoppedError&) {
    throw;
  } catch (const Error& error) {
    return {"NCCL", Verdict::fault, error.what(), "look at LD_LIBRARY_PATH and LD_PRELOAD"};
  }
}

}  // namespace zero
