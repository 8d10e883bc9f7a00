#include "comm/agreement/agreement.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>

#include <chrono>
#include <thread>

#include "base/memory_tracker.h"
#include "comm/sim/sim_world.h"

namespace zero {
namespace {

template <class Thrown>
std::string thrown(const std::function<void()>& work) {
  try {
    work();
  } catch (const Thrown& error) {
    return error.what();
  }
  return "nothing";
}

SimWorld impatient_world(int ranks) { return SimWorld({.ranks = ranks, .deadline = std::chrono::milliseconds(1200)}); }

// A rank that cannot read fails at once; one that waited for it fails at the end of its patience, and knows less.
TEST(AllOrNone, NamesTheRankThatFailedFirst) {
  SimWorld(4).run([](Communicator& group, int rank) {
    const std::string message = thrown<InputError>([&] {
      all_or_none(group, [&] {
        if (rank == 2) throw InputError("weights.safetensors cannot be read");
        std::this_thread::sleep_for(std::chrono::milliseconds(50 + 20 * rank));
        throw Error("deadline passed");
      });
    });
    EXPECT_EQ(message, "rank 2: weights.safetensors cannot be read");
  });
}

TEST(AllOrNone, NamesNoRankWhereAllFailAlike) {
  SimWorld(3).run([](Communicator& group, int) {
    EXPECT_EQ(thrown<AgreedError>([&] { all_or_none(group, [] { throw Error("no such file"); }); }), "no such file");
  });
}

TEST(AllOrNone, NamesRank0ForItsFailuresAndNotForWhatItRefuses) {
  SimWorld(3).run([](Communicator& group, int rank) {
    const auto fails_on_0 = [&](auto error) {
      return [&group, rank, error] {
        all_or_none(group, [&] {
          if (rank == 0) throw error;
        });
      };
    };
    EXPECT_EQ(thrown<AgreedError>(fails_on_0(Error("no room"))), "rank 0: no room");
    EXPECT_EQ(thrown<InputError>(fails_on_0(InputError("no such key"))), "no such key");
    EXPECT_EQ(thrown<InputError>(fails_on_0(InputError(""))), "");
    all_or_none(group, [] {});
  });
}

TEST(AllOrNone, KeepsTheExitCode) {
  SimWorld(2).run([](Communicator& group, int rank) {
    try {
      all_or_none(group, [&] {
        if (rank == 1) throw Error("asked to stop", ExitCode::stopped);
      });
      ADD_FAILURE() << "was accepted";
    } catch (const AgreedError& error) {
      EXPECT_EQ(error.code(), ExitCode::stopped);
    }
  });
}

TEST(OnFirst, MayTakeLongerThanTheDeadlineOfCollectives) {
  impatient_world(3).run([](Communicator& group, int rank) {
    int calls = 0;
    on_first(group, [&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(3000));
      ++calls;
    });
    EXPECT_EQ(calls, rank == 0);
  });
}

TEST(OnFirst, ThrowsItsErrorOnAllRanks) {
  SimWorld(3).run([](Communicator& group, int) {
    EXPECT_EQ(thrown<InputError>([&] { on_first(group, [] { throw InputError("no such file"); }); }), "no such file");
    EXPECT_EQ(thrown<AgreedError>([&] { on_first(group, [] { throw Error("no room"); }); }), "no room");
    EXPECT_THROW(on_first(group, [] { throw std::bad_alloc(); }), AgreedError);
    on_first(group, [] {});
  });
}

TEST(OnFirst, WorksAsTheCallingThreadWould) {
  SimWorld({.ranks = 2, .threads_per_rank = 2}).run([](Communicator& group, int rank) {
    MemoryTracker tracker;
    TrackerScope booked(tracker);
    const CategoryScope scope(MemoryCategory::buffers);
    const at::NoGradGuard no_grad;
    on_first(group, [&] {
      EXPECT_EQ(rank, 0);
      EXPECT_EQ(current_tracker(), &tracker);
      EXPECT_EQ(current_category(), MemoryCategory::buffers);
      EXPECT_EQ(at::get_num_threads(), 2);
      EXPECT_FALSE(at::GradMode::is_enabled());
    });
  });
}

TEST(AgreedFailure, IsWhatAllRanksThrow) {
  EXPECT_EQ(agreed_failure_of([] {}), std::nullopt);
  EXPECT_EQ(agreed_failure_of([] { throw AgreedError("no room"); }), "no room");
  EXPECT_EQ(agreed_failure_of([] { throw InputError("no such key"); }), "no such key");
  EXPECT_THROW(agreed_failure_of([] { throw Error("deadline passed"); }), Error);
}

}  // namespace
}  // namespace zero
