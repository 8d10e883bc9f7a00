// Tests that need NCCL's library but no GPU.
#include "comm/nccl/nccl_library.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/error.h"
#include "comm/nccl/nccl_communicator.h"
#include "comm/sim/sim_world.h"

namespace zero {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(NcclLibrary, says_what_was_loaded) {
  const NcclLibrary library = NcclLibrary::loaded();
  EXPECT_GE(library.version, 22809);
  EXPECT_THAT(library.path, HasSubstr("libnccl.so"));
  EXPECT_EQ((NcclLibrary{22809, "/x/libnccl.so.2"}).describe(), "NCCL 2.28.9 from /x/libnccl.so.2");
  EXPECT_FALSE((NcclLibrary{22809, ""}).allows_ranks_on_one_gpu());
  EXPECT_TRUE((NcclLibrary{23007, ""}).allows_ranks_on_one_gpu());
}

TEST(NcclLibrary, ranks_with_different_versions_are_refused) {
  SimWorld({.ranks = 3}).run([](Communicator& c, int rank) {
    check_same_nccl({22809, ""}, c);
    try {
      check_same_nccl({rank == 1 ? 23007 : 22809, ""}, c);
      ADD_FAILURE() << "was accepted";
    } catch (const InputError& error) {
      EXPECT_THAT(error.what(), AllOf(HasSubstr("rank 0 has loaded NCCL 2.28.9 and rank 1 NCCL 2.30.7"),
                                      HasSubstr("LD_LIBRARY_PATH")));
    }
  });
}

TEST(NcclLibrary, the_environment_orders_launches_and_keeps_what_the_user_set) {
  setenv("NCCL_NVLS_ENABLE", "2", 1);
  prepare_nccl_environment({.ranks_per_gpu = 2});
  EXPECT_STREQ(getenv("NCCL_LAUNCH_ORDER_IMPLICIT"), "1");
  EXPECT_STREQ(getenv("NCCL_MULTI_RANK_GPU_ENABLE"), "1");
  EXPECT_STREQ(getenv("NCCL_NVLS_ENABLE"), "2");
}

}  // namespace
}  // namespace zero
