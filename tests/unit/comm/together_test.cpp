#include "comm/together.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gmock/gmock.h>

#include <thread>

#include "base/error.h"
#include "base/ledger.h"
#include "comm/sim/sim_world.h"

namespace zero {
namespace {

SimWorld impatient_world(int ranks) { return SimWorld({.ranks = ranks, .deadline = std::chrono::milliseconds(1200)}); }

TEST(RunOnFirst, MayTakeLongerThanTheDeadlineOfCollectives) {
  impatient_world(3).run([](Communicator& comm, int rank) {
    int calls = 0;
    run_on_first(comm, [&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(3000));
      ++calls;
    });
    EXPECT_EQ(calls, rank == 0);
  });
}

TEST(RunOnFirst, ThrowsItsErrorOnAllRanks) {
  SimWorld(3).run([](Communicator& comm, int) {
    EXPECT_THROW(run_on_first(comm, [] { throw InputError("no such file"); }), InputError);
    EXPECT_THROW(run_on_first(comm, [] { throw Error("no room", ExitCode::failure); }), Error);
    EXPECT_THROW(run_on_first(comm, [] { throw std::bad_alloc(); }), Error);
    run_on_first(comm, [] {});
  });
}

TEST(RunOnFirst, WorksAsTheCallingThreadWould) {
  SimWorld({.ranks = 2, .threads_per_rank = 2}).run([](Communicator& comm, int rank) {
    Ledger ledger;
    LedgerScope booked(ledger);
    const MemoryScope scope(MemoryCategory::buffers);
    const at::NoGradGuard no_grad;
    run_on_first(comm, [&] {
      EXPECT_EQ(rank, 0);
      EXPECT_EQ(current_ledger(), &ledger);
      EXPECT_EQ(current_category(), MemoryCategory::buffers);
      EXPECT_EQ(at::get_num_threads(), 2);
      EXPECT_FALSE(at::GradMode::is_enabled());
    });
  });
}

TEST(ToldBy, BringsATextOfAnyLengthToAll) {
  SimWorld(3).run([](Communicator& comm, int rank) {
    for (const std::string& words : {std::string(), std::string("a"), std::string(100000, 'x')})
      EXPECT_EQ(told_by(comm, 1, rank == 1 ? words : "other"), words);
    EXPECT_EQ(told_by(comm, 2, std::int64_t{-5} * rank), -10);
  });
}

}  // namespace
}  // namespace zero
