// Work of the main process, while others wait.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "comm/outcome.h"
#include "tests/mpi/mpi_world.h"
#include "zero/library/world_impl.h"

namespace zero {
namespace {

using ::testing::HasSubstr;

/// The processes, as a program has them: with a deadline, and with control of long patience.
struct Processes {
  explicit Processes(std::chrono::duration<double> deadline)
      : ranks(make_mpi_communicator(mpi_world_handle(), {.deadline = deadline})) {
    auto impl = std::make_shared<World::Impl>();
    impl->ranks = impl->host = ranks.get();
    impl->control = &mpi_world().control();
    world.emplace(std::move(impl));
  }
  std::unique_ptr<Communicator> ranks;
  std::optional<World> world;
};

void sleep_beyond_the_deadline() { std::this_thread::sleep_for(std::chrono::milliseconds(900)); }

TEST(MainWork, MayTakeLongerThanTheDeadline) {
  const Processes processes(std::chrono::duration<double>(0.3));
  const World& world = *processes.world;
  int works = 0;
  world.on_main([&] {
    sleep_beyond_the_deadline();
    ++works;
  });
  EXPECT_EQ(works, world.is_main());
  world.main_first([&] { sleep_beyond_the_deadline(); });  // the others' too
  EXPECT_EQ(world.sum(at::ones({1})).item<float>(), float(world.size()));
}

TEST(MainWork, MeetsAnotherCallAtOnce) {
  if (mpi_world().size() == 1) GTEST_SKIP() << "nobody to disagree with";
  for (const bool first : {false, true}) {
    const Processes processes(std::chrono::duration<double>(3600));
    const World& world = *processes.world;
    const std::string message = outcome_of([&] {
                                  if (!world.is_main()) world.sum(at::ones({3}));
                                  first ? world.main_first([] {}) : world.on_main([] {});
                                }).message;
    mpi_world().control().barrier();
    if (!world.is_main()) continue;
    EXPECT_THAT(message, HasSubstr("rank 0 called #0 barrier (on_main), but rank"));
    EXPECT_THAT(message, HasSubstr("called #0 all_reduce of 3 float (world.sum())"));
    EXPECT_THAT(message, HasSubstr("none is inside what one rank alone does"));
  }
}

}  // namespace
}  // namespace zero
