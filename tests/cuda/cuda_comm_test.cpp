// The conformance suite on GPUs, through what make_device_communicator() chooses: NCCL with a GPU for each rank, and where
// there are fewer GPUs than ranks, NCCL or staged messages with two ranks on one. Skipped without a GPU.
#include <ATen/ATen.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <gtest/gtest.h>

#include "comm/device_choice.h"
#include "comm/staged_communicator.h"
#include "tests/cuda/device_adapter.h"
#include "tests/mpi/mpi_world.h"
#include "tests/unit/comm/conformance.h"

namespace zero {
namespace {

int gpus() { return at::detail::getCUDAHooks().deviceCount(); }

enum class Path { chosen, staged };

class CudaConformance : public testing::TestWithParam<std::tuple<ConformanceCase, Path>> {
 protected:
  void SetUp() override {
    if (gpus() == 0) GTEST_SKIP() << "no GPU";
    if (gpus() * 2 < mpi_world().local_size()) GTEST_SKIP() << "more than two ranks for a GPU";
  }
};

TEST_P(CudaConformance, holds) {
  const auto& [conformance, path] = GetParam();
  World& world = mpi_world();
  const int shared = gpus() < world.local_size() ? 2 : 1;
  const c10::Device device = choose_device({"cuda", shared}, world.local_rank(), world.local_size());
  std::unique_ptr<Communicator> inner;
  if (path == Path::staged) inner = std::make_unique<StagedCommunicator>(world.communicator().split(0, world.rank()), device);
  else inner = make_device_communicator(world.communicator(), device, {std::chrono::seconds(60), shared});
  DeviceAdapter adapter(std::move(inner), device);
  conformance.body(adapter);
}

INSTANTIATE_TEST_SUITE_P(cuda, CudaConformance, testing::Combine(testing::ValuesIn(conformance_cases()), testing::Values(Path::chosen, Path::staged)),
                         [](const auto& info) { return std::get<0>(info.param).name + (std::get<1>(info.param) == Path::staged ? "_staged" : "_chosen"); });

}  // namespace
}  // namespace zero
