#include "comm/world/device_choice.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "comm/sim/sim_world.h"
#include "comm/world/device_backends.h"

namespace zero {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string refusal(const DeviceRequest& request, int ranks, int gpus, bool has_cuda) {
  try {
    choose_device(request, 0, ranks, gpus, has_cuda);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(DeviceChoice, takes_a_gpu_per_rank_where_there_are_enough) {
  EXPECT_EQ(choose_device({"auto", 1}, 3, 4, 4, true), c10::Device(at::kCUDA, 3));
  EXPECT_EQ(choose_device({"auto", 1}, 3, 4, 3, true), c10::Device(at::kCPU));
  EXPECT_EQ(choose_device({"auto", 1}, 0, 1, 0, true), c10::Device(at::kCPU));
  EXPECT_EQ(choose_device({"auto", 1}, 0, 1, 0, false), c10::Device(at::kCPU));
  EXPECT_EQ(choose_device({"cpu", 1}, 0, 1, 8, true), c10::Device(at::kCPU));
  EXPECT_EQ(choose_device({"cuda", 2}, 3, 4, 2, true), c10::Device(at::kCUDA, 1));
}

TEST(DeviceChoice, refuses_what_cannot_be_honoured) {
  EXPECT_THAT(refusal({"cuda", 1}, 1, 0, false), AllOf(HasSubstr("training.device = \"cuda\""),
                                                       HasSubstr("built without CUDA"), HasSubstr("cuda preset")));
  EXPECT_THAT(refusal({"cuda", 1}, 1, 0, true), AllOf(HasSubstr("no usable GPU"), HasSubstr("nvidia-smi")));
  EXPECT_THAT(refusal({"cuda", 1}, 4, 2, true), AllOf(HasSubstr("4 ranks on a node with 2 GPUs"),
                                                      HasSubstr("comm.ranks_per_gpu = 1"), HasSubstr("at most 2")));
  EXPECT_EQ(refusal({"cuda", 2}, 4, 2, true), "");
}

TEST(DeviceBackends, nccl_serves_a_gpu_and_staging_what_nccl_cannot) {
  const c10::Device gpu(at::kCUDA, 0);
  EXPECT_STREQ(backend_for(gpu).name, "nccl");
  EXPECT_STREQ(backend_for(gpu, {.ranks_per_gpu = 3}).name, "staged");
  EXPECT_THROW(backend_for(at::kCPU), InternalError);
}

TEST(DeviceChoice, refuses_ranks_on_different_kinds_of_devices) {
  SimWorld({.ranks = 3}).run([](Communicator& c, int rank) {
    check_same_device_type(c10::Device(at::kCPU), c);
    try {
      check_same_device_type(rank == 2 ? c10::Device(at::kCUDA, 0) : c10::Device(at::kCPU), c);
      ADD_FAILURE() << "was accepted";
    } catch (const InputError& error) {
      EXPECT_THAT(error.what(), HasSubstr("rank 2"));
    }
  });
}

}  // namespace
}  // namespace zero
