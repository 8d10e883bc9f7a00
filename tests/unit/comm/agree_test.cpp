#include "comm/agree.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "comm/sim/sim_world.h"

namespace zero {
namespace {

std::string message_of(Communicator& group, const std::function<void()>& phase) {
  try {
    agree(group, phase);
    return {};
  } catch (const AgreedError& error) {
    return error.what();
  }
}

// A rank that cannot read fails at once; one that waited for it fails at the end of its patience, and knows less.
TEST(Agree, NamesTheRankThatFailedFirst) {
  SimWorld(4).run([](Communicator& group, int rank) {
    const std::string message = message_of(group, [&] {
      if (rank == 2) throw InputError("weights.safetensors cannot be read");
      std::this_thread::sleep_for(std::chrono::milliseconds(50 + 20 * rank));
      throw Error("deadline passed");
    });
    EXPECT_EQ(message, "rank 2: weights.safetensors cannot be read");
  });
}

TEST(Agree, NamesNoRankWhereAllFailAlike) {
  SimWorld(3).run([](Communicator& group, int) {
    EXPECT_EQ(message_of(group, [] { throw Error("no such file"); }), "no such file");
  });
}

}  // namespace
}  // namespace zero
