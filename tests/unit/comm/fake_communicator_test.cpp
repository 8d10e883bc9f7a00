#include "comm/fake/fake_communicator.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "comm/nccl/nccl_communicator.h"

namespace zero {
namespace {

TEST(FakeCommunicator, repeats_the_own_shard) {
  FakeCommunicator c(2, 4);
  const at::Tensor full = at::zeros({12});
  c.all_gather_into(full, at::arange(3, at::kFloat));
  EXPECT_TRUE(at::equal(full, at::arange(3, at::kFloat).repeat({4})));
}

TEST(FakeCommunicator, gives_the_own_slice) {
  FakeCommunicator c(2, 4);
  const at::Tensor shard = at::ones({3});
  c.reduce_scatter(shard, at::arange(12, at::kFloat));
  EXPECT_TRUE(at::equal(shard, at::arange(6, 9, at::kFloat)));
  c.reduce_scatter(shard, at::arange(12, at::kFloat), {.accumulate = true});
  EXPECT_TRUE(at::equal(shard, 2 * at::arange(6, 9, at::kFloat)));
}

TEST(FakeCommunicator, gives_what_it_sends_itself_and_zeros_from_others) {
  FakeCommunicator c(2, 4);
  const at::Tensor out = at::ones({9});
  c.all_to_all(out, {0, 4, 2, 3}, at::arange(7, at::kFloat), {1, 3, 2, 1});
  EXPECT_TRUE(at::equal(out, at::tensor({0, 0, 0, 0, 4, 5, 0, 0, 0}, at::kFloat)));
  c.all_to_all(at::empty({0}), {0, 0, 0, 0}, at::ones({3}), {3, 0, 0, 0});
}

TEST(FakeCommunicator, checks_arguments_like_every_backend) {
  FakeCommunicator c(2, 4);
  EXPECT_THROW(c.reduce_scatter(at::zeros({3}), at::zeros({13})), InternalError);
}

TEST(FakeCommunicator, splits_off_pretended_ranks) {
  FakeCommunicator c(5, 64);
  auto part = c.split({9, 13, 5});
  EXPECT_EQ(part->rank(), 2);
  EXPECT_EQ(part->size(), 3);
}

TEST(Nccl, absence_of_library_or_gpu_is_named) {
  FakeCommunicator c(0, 1);
  try {
    make_nccl_communicator(c, 9999);  // no machine has it
    FAIL() << "no error";
  } catch (const Error& e) {
    const std::string message = e.what();
    EXPECT_TRUE(message.find("cuda preset") != std::string::npos || message.find("cudaSetDevice") != std::string::npos)
        << message;
  }
}

}  // namespace
}  // namespace zero
