// The conformance suite on GPUs, through what make_device_communicator() chooses: NCCL with a GPU for each rank, and
// where there are fewer GPUs than ranks, NCCL or staged messages with two ranks on one. Skipped without a GPU.
#include <ATen/ATen.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <gtest/gtest.h>

#include <chrono>

#include "base/error.h"
#include "comm/decorators/staged_communicator.h"
#include "comm/nccl/nccl_communicator.h"
#include "comm/world/device_backends.h"
#include "comm/world/device_choice.h"
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
  Job& world = mpi_world();
  const int shared = gpus() < world.local_size() ? 2 : 1;
  const c10::Device device = choose_device({"cuda", shared}, world.local_rank(), world.local_size());
  std::unique_ptr<Communicator> inner;
  if (path == Path::staged)
    inner = std::make_unique<StagedCommunicator>(world.communicator().duplicate(), device);
  else
    inner = make_device_communicator(world.communicator(), device, {std::chrono::seconds(60), shared});
  DeviceAdapter adapter(std::move(inner), device);
  conformance.body(adapter);
}

INSTANTIATE_TEST_SUITE_P(cuda, CudaConformance,
                         testing::Combine(testing::ValuesIn(conformance_cases()),
                                          testing::Values(Path::chosen, Path::staged)),
                         [](const auto& info) {
                           return std::get<0>(info.param).name +
                                  (std::get<1>(info.param) == Path::staged ? "_staged" : "_chosen");
                         });

/// The ranks' GPUs through NCCL; one for each is needed.
class Nccl : public testing::Test {
 protected:
  void SetUp() override {
    if (gpus() < mpi_world().local_size() || mpi_world().size() < 2)
      GTEST_SKIP() << "two ranks with a GPU each are needed";
    device_ = choose_device({"cuda", 1}, mpi_world().local_rank(), mpi_world().local_size());
  }
  std::unique_ptr<Communicator> connect(const NcclOptions& options) const {
    return make_nccl_communicator(mpi_world().communicator(), device_.index(), options);
  }

  c10::Device device_ = at::kCPU;
};

// Many chunks, and an end that ranks do not divide.
TEST_F(Nccl, LargeSumsGoInChunksAndHaveTheBitsOfTheCpu) {
  Communicator& host = mpi_world().communicator();
  NcclOptions options{std::chrono::seconds(60)};
  options.chunk_bytes = 1 << 15;
  const auto nccl = connect(options);
  const auto random = [&](std::int64_t numel, at::ScalarType type) {
    return at::randn({numel}, at::make_generator<at::CPUGeneratorImpl>(host.rank() + 1), at::kFloat).to(type);
  };
  at::DeviceAllocator* const allocator = at::getDeviceAllocator(device_.type());
  for (const at::ScalarType type : {at::kBFloat16, at::kFloat}) {
    const std::int64_t numel = 150000 * host.size() + 1, part = 70008;
    const at::Tensor want = random(numel, type), got = want.to(device_);
    host.all_reduce(want);
    allocator->resetPeakStats(device_.index());
    const std::int64_t before = allocator->getDeviceStats(device_.index()).allocated_bytes[0].current;
    nccl->all_reduce(got);
    EXPECT_TRUE(at::equal(got.to(at::kCPU), want)) << type;
    EXPECT_LT(allocator->getDeviceStats(device_.index()).allocated_bytes[0].peak - before, 4 * options.chunk_bytes)
        << type << ": a copy of the whole";
    const at::Tensor full = random(part * host.size(), type), shard = random(part, at::kFloat),
                     on_gpu = shard.to(device_);
    host.reduce_scatter(shard, full, {at::kFloat, true});
    nccl->reduce_scatter(on_gpu, full.to(device_), {at::kFloat, true});
    EXPECT_TRUE(at::equal(on_gpu.to(at::kCPU), shard)) << type;
  }
  nccl->failures().check();
}

/// Lets go of memory for which the device must be done.
struct LocksPages {
  c10::Device device;
  ~LocksPages() { at::detail::getCUDAHooks().deviceSynchronize(device.index()); }
};

// The first rank is in a collective that nobody else comes to, and fails.
TEST_F(Nccl, ARankThatFailsAloneDoesNotWaitForTheOthers) {
  const auto begin = std::chrono::steady_clock::now();
  try {
    const auto nccl = connect({std::chrono::seconds(40)});
    const LocksPages memory{device_};
    const AbandonOnError abandon(nccl->failures());
    const at::Tensor tensor = at::ones({1000}, at::TensorOptions().device(device_));
    if (mpi_world().rank() == 0) nccl->all_reduce(tensor);
    throw Error("out of memory");
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "out of memory");
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
  mpi_world().communicator().barrier();
}

}  // namespace
}  // namespace zero
