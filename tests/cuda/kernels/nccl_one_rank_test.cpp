// The calls of NCCL themselves, on one GPU: a group of one that goes through the library. Skipped without a GPU.
#include <ATen/ATen.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <gtest/gtest.h>

#include "comm/nccl/nccl_communicator.h"
#include "comm/sim/sim_world.h"
#include "comm/stream.h"
#include "tests/cuda/device_adapter.h"
#include "tests/unit/comm/conformance.h"

namespace zero {
namespace {

const at::Device gpu(at::kCUDA, 0);

void with_nccl(const std::function<void(std::unique_ptr<Communicator>)>& body) {
  SimWorld({.ranks = 1}).run([&](Communicator& host, int) {
    body(make_nccl_communicator(host, 0, {.deadline = std::chrono::seconds(30), .one_rank_too = true}));
  });
}

class NcclOneRank : public testing::Test {
 protected:
  void SetUp() override {
    if (at::detail::getCUDAHooks().deviceCount() == 0) GTEST_SKIP() << "no GPU";
  }
};

class NcclOneRankConformance : public NcclOneRank, public testing::WithParamInterface<ConformanceCase> {};

TEST_P(NcclOneRankConformance, holds) {
  with_nccl([&](std::unique_ptr<Communicator> nccl) {
    DeviceAdapter adapter(std::move(nccl), gpu);
    GetParam().body(adapter);
  });
}

INSTANTIATE_TEST_SUITE_P(nccl, NcclOneRankConformance, testing::ValuesIn(conformance_cases()),
                         [](const auto& info) { return info.param.name; });

TEST_F(NcclOneRank, collectives_run_in_the_arena_and_the_arena_is_used_up) {
  with_nccl([](std::unique_ptr<Communicator> nccl) {
    constexpr std::int64_t n = 1 << 20;
    nccl->memory().reserve({4 * n, 4 * n}, 4 * n);
    EXPECT_GE(nccl->memory().own_device_bytes(), 12 * n);
    const at::Tensor full = nccl->memory().allocate(n, at::kFloat), shard = nccl->memory().allocate(n, at::kFloat);
    EXPECT_EQ(std::abs(static_cast<char*>(full.data_ptr()) - static_cast<char*>(shard.data_ptr())), 4 * n)
        << "side by side in one block";
    shard.copy_(at::arange(n, at::kFloat));
    nccl->all_gather_into(full, shard);
    EXPECT_TRUE(at::equal(full, shard));
    nccl->reduce_scatter(shard, full, {at::kFloat, true});
    EXPECT_TRUE(at::equal(shard, full * 2));
    nccl->all_reduce(full);
    EXPECT_TRUE(at::equal(full * 2, shard));
    const at::Tensor beyond = nccl->memory().allocate(n, at::kFloat).fill_(1);  // LibTorch's memory, unregistered
    nccl->all_reduce(beyond);
    EXPECT_EQ(beyond.sum().item<double>(), double(n));
    nccl->failures().check();
  });
}

TEST_F(NcclOneRank, two_communicators_work_in_two_streams) {
  with_nccl([](std::unique_ptr<Communicator> gathers) {
    const auto sums = gathers->split({0});
    constexpr std::int64_t n = 1 << 22;
    gathers->memory().reserve({4 * n}, 0);
    sums->memory().reserve({4 * n, 4 * n}, 4 * n);
    const at::Tensor a = gathers->memory().allocate(n, at::kFloat).fill_(1),
                     b = sums->memory().allocate(n, at::kFloat).fill_(2),
                     c = sums->memory().allocate(n, at::kFloat).fill_(0);
    SideStream one(gpu), other(gpu);
    one.follow_current();
    other.follow_current();
    for (int i = 0; i < 50; ++i) {
      {
        const auto guard = one.enter();
        gathers->all_reduce(a);
      }
      const auto guard = other.enter();
      sums->reduce_scatter(c, b, {at::kFloat, true});
    }
    one.join();
    other.join();
    EXPECT_EQ(a.sum().item<double>(), double(n));
    EXPECT_EQ(c.sum().item<double>(), 100.0 * double(n));
  });
}

}  // namespace
}  // namespace zero
