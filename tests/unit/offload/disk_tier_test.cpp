#include "offload/disk/disk_tier.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/memory_tracker.h"
#include "offload/disk/disk_shard_store.h"
#include "offload/memory/host_shard_store.h"
#include "offload/shard_store.h"
#include "tests/unit/offload/faulty_io.h"

namespace zero {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

/// A directory of its own for each test, and both ways to the disk.
class DiskTierTest : public ::testing::TestWithParam<BlockIoKind> {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "zero-tier-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    directory_ = name;
    if (GetParam() == BlockIoKind::automatic) {
      std::string reason;
      const HostArena arena(1, 4096, MemoryCategory::other);
      if (!make_uring_io(arena, 2, &reason)) GTEST_SKIP() << "io_uring: " << reason;
    }
  }
  void TearDown() override { fs::remove_all(directory_); }

  DiskTierOptions options() const {
    DiskTierOptions options;
    options.directory = directory_;
    options.rank = 3;
    options.chunk_bytes = 1 << 18;
    options.io = GetParam();
    return options;
  }
  std::string only_file() const {
    for (const auto& entry : fs::directory_iterator(directory_ + "/rank-3"))
      if (entry.path().extension() == ".zero-state") return entry.path().string();
    return "";
  }

  std::string directory_;
};

template <class Run>
std::string message_of(const Run& run) {
  try {
    run();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

const std::vector<StateSpec> three{{"master"}, {"exp_avg"}, {"exp_avg_sq"}};

at::Tensor draw(std::int64_t n, std::uint64_t seed) {
  auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  return at::randn({n}, generator, at::kFloat);
}

void set_first(StateStore& store, const at::Tensor& from) {
  store.for_each_chunk(StateAccess::write, [&](const StateChunk& c) {
    std::memcpy(c.states[0], from.data_ptr<float>() + c.begin, static_cast<std::size_t>(c.end - c.begin) * 4);
  });
}

/// Changes every byte of every state, by where it is and what it was.
void stir(StateStore& store, StateAccess access, unsigned round) {
  std::int64_t seen = 0;
  store.for_each_chunk(access, [&](const StateChunk& c) {
    ASSERT_EQ(c.begin, seen);
    seen = c.end;
    for (std::size_t s = 0; s < c.states.size(); ++s) {
      const StateSpec& spec = store.states()[s];
      const std::int64_t first = spec.bytes(c.begin), count = spec.bytes(c.end - c.begin);
      auto* bytes = static_cast<unsigned char*>(c.states[s]);
      for (std::int64_t i = 0; i < count; ++i)
        bytes[i] = static_cast<unsigned char>(access == StateAccess::write ? (first + i) * 7 + round
                                                                           : bytes[i] * 5 + round + (first + i) % 3);
    }
  });
  EXPECT_EQ(seen, store.elements());
}

std::vector<unsigned char> content(StateStore& store) {
  std::vector<std::vector<unsigned char>> by_state(store.states().size());
  store.for_each_chunk(StateAccess::read, [&](const StateChunk& c) {
    for (std::size_t s = 0; s < c.states.size(); ++s) {
      const auto* bytes = static_cast<const unsigned char*>(c.states[s]);
      by_state[s].insert(by_state[s].end(), bytes, bytes + store.states()[s].bytes(c.end - c.begin));
    }
  });
  std::vector<unsigned char> all;
  for (const auto& one : by_state) all.insert(all.end(), one.begin(), one.end());
  return all;
}

TEST_P(DiskTierTest, HoldsWhatATensorHolds) {
  const auto tier = DiskTier::create(options());
  const std::vector<std::vector<StateSpec>> kinds{
      three,
      {{"one", at::kDouble}},
      {{"master"}, {"codes", at::kByte}, {"more_codes", at::kByte}, {"absmax", at::kFloat, 256}},
      {}};
  for (const auto& states : kinds) {
    for (const std::int64_t n : {std::int64_t{0}, std::int64_t{1}, std::int64_t{200'003}, std::int64_t{65'536}}) {
      const auto store = tier->make_store("unit-0", n, states);
      ResidentStateStore resident(n, states);
      EXPECT_EQ(content(*store), content(resident)) << "zeros at first";
      for (StateStore* each : {store.get(), static_cast<StateStore*>(&resident)}) {
        stir(*each, StateAccess::write, 1);
        each->prefetch();
        stir(*each, StateAccess::read_write, 2);
        stir(*each, StateAccess::read_write, 3);
      }
      EXPECT_EQ(content(*store), content(resident));
    }
  }
}

TEST_P(DiskTierTest, SeveralUnitsShareTheBuffersWhateverTheirSize) {
  MemoryTracker tracker;
  const TrackerScope scope(tracker);
  const auto tier = DiskTier::create(options());
  std::vector<std::unique_ptr<StateStore>> stores;
  for (const std::int64_t n : {1, 500'000, 21'000})
    stores.push_back(tier->make_store("unit-" + std::to_string(stores.size()), n, three));
  EXPECT_EQ(tracker.live(MemoryCategory::optimizer), 4 << 18);
  for (int step = 1; step <= 2; ++step) {
    for (const auto& store : stores) store->prefetch();
    for (const auto& store : stores)
      store->for_each_chunk(StateAccess::read_write, [](const StateChunk& c) {
        for (void* state : c.states)
          for (std::int64_t i = 0; i < c.end - c.begin; ++i) static_cast<float*>(state)[i] += 1;
      });
  }
  for (const auto& store : stores)
    store->for_each_chunk(StateAccess::read, [](const StateChunk& c) {
      for (void* state : c.states)
        for (std::int64_t i = 0; i < c.end - c.begin; ++i) ASSERT_EQ(static_cast<float*>(state)[i], 2);
    });
  EXPECT_EQ(tracker.peak(MemoryCategory::optimizer), 4 << 18);
}

TEST_P(DiskTierTest, ShortTransfersAreContinued) {
  FaultPlan plan{.shorten_every = 2};
  DiskTierOptions faulty = options();
  faulty.wrap = with_faults(plan);
  const auto tier = DiskTier::create(faulty);
  const auto store = tier->make_store("unit", 100'000, three);
  const at::Tensor values = draw(100'000, 4);
  set_first(*store, values);
  store->for_each_chunk(StateAccess::read, [&](const StateChunk& c) {
    ASSERT_EQ(
        std::memcmp(c.states[0], values.data_ptr<float>() + c.begin, static_cast<std::size_t>(c.end - c.begin) * 4), 0);
  });
  EXPECT_GT(plan.shortened, 5);
}

TEST_P(DiskTierTest, FailedTransfersNameFileAndReason) {
  for (const int code : {EIO, ENOSPC}) {
    for (const int at : {1, 3, 9}) {
      FaultPlan plan{.fail_at = at, .fail_with = code};
      DiskTierOptions faulty = options();
      faulty.wrap = with_faults(plan);
      const std::string message = message_of([&] {
        const auto tier = DiskTier::create(faulty);
        const auto store = tier->make_store("unit", 100'000, three);
        for (int pass = 0; pass < 3; ++pass) store->for_each_chunk(StateAccess::read_write, [](const StateChunk&) {});
      });
      EXPECT_THAT(message, HasSubstr("unit.zero-state"));
      EXPECT_THAT(message, HasSubstr(std::strerror(code)));
    }
  }
}

TEST_P(DiskTierTest, CutFileIsRefused) {
  const auto tier = DiskTier::create(options());
  const auto store = tier->make_store("unit", 100'000, three);
  const auto pass = [&] { store->for_each_chunk(StateAccess::read_write, [](const StateChunk&) {}); };
  pass();
  fs::resize_file(only_file(), 5000);
  EXPECT_THAT(message_of(pass), HasSubstr("was cut"));
}

TEST_P(DiskTierTest, FileCutDuringAPassIsRefused) {
  const auto tier = DiskTier::create(options());
  const auto store = tier->make_store("unit", 200'000, three);
  store->for_each_chunk(StateAccess::read_write, [](const StateChunk&) {});
  const std::string message = message_of([&] {
    store->for_each_chunk(StateAccess::read, [&](const StateChunk& c) {
      if (c.begin == 0) fs::resize_file(only_file(), 700'000);
    });
  });
  EXPECT_THAT(message, HasSubstr("unit.zero-state"));
  EXPECT_THAT(message, HasSubstr("cut while in use"));
}

TEST_P(DiskTierTest, RemovedFileIsRefused) {
  const auto tier = DiskTier::create(options());
  const auto store = tier->make_store("unit", 1000, three);
  fs::remove(only_file());
  EXPECT_THAT(message_of([&] { store->for_each_chunk(StateAccess::read, [](const StateChunk&) {}); }),
              HasSubstr("was removed"));
}

TEST_P(DiskTierTest, ForeignBytesAreNoticed) {
  const auto tier = DiskTier::create(options());
  const auto store = tier->make_store("unit", 100'000, three);
  const auto pass = [&] { store->for_each_chunk(StateAccess::read_write, [](const StateChunk&) {}); };
  pass();
  pass();
  std::fstream file(only_file(), std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(300'000);
  file.put(1);
  file.close();
  EXPECT_THAT(message_of(pass), HasSubstr("came back other than they were written"));
}

TEST_P(DiskTierTest, SecondRunOnTheDirectoryIsRefused) {
  const auto tier = DiskTier::create(options());
  EXPECT_THAT(message_of([&] { DiskTier::create(options()); }), HasSubstr("in use by another run"));
  DiskTierOptions other_rank = options();
  other_rank.rank = 4;
  EXPECT_NO_THROW(DiskTier::create(other_rank));
}

TEST_P(DiskTierTest, LeftoversAreSweptForeignFilesRefused) {
  fs::create_directories(directory_ + "/rank-3");
  std::ofstream(directory_ + "/rank-3/unit-7.zero-state") << "of a run that was killed";
  DiskTier::create(options());
  EXPECT_FALSE(fs::exists(directory_ + "/rank-3"));  // swept, and removed at the end
  fs::create_directories(directory_ + "/rank-3");
  std::ofstream(directory_ + "/rank-3/thesis.txt") << "precious";
  EXPECT_THAT(message_of([&] { DiskTier::create(options()); }), HasSubstr("thesis.txt"));
  EXPECT_TRUE(fs::exists(directory_ + "/rank-3/thesis.txt"));
}

TEST_P(DiskTierTest, FullDiskIsRefusedBeforeAnythingIsWritten) {
  const std::string small = directory_ + "/small";
  fs::create_directory(small);
  if (::mount("none", small.c_str(), "tmpfs", 0, "size=1m") != 0)
    GTEST_SKIP() << "only root may mount a small file system";
  DiskTierOptions on_small = options();
  on_small.directory = small;
  const std::string message = message_of([&] {
    const auto tier = DiskTier::create(on_small);
    const auto fits = tier->make_store("fits", 40'000, three);
    fits->for_each_chunk(StateAccess::read_write, [](const StateChunk&) {});
    tier->make_store("too-large", 1'000'000, three);
  });
  ::umount(small.c_str());
  EXPECT_THAT(message, HasSubstr("the disk is full"));
  EXPECT_THAT(message, HasSubstr("12005376"));
}

TEST_P(DiskTierTest, VisitThatThrowsLeavesTheTierUsable) {
  const auto tier = DiskTier::create(options());
  const auto store = tier->make_store("unit", 100'000, three);
  for (int i = 0; i < 6; ++i) {
    EXPECT_THROW(store->for_each_chunk(StateAccess::read_write,
                                       [](const StateChunk& c) {
                                         if (c.begin > 0) throw std::runtime_error("stop");
                                       }),
                 std::runtime_error);
  }
  EXPECT_NO_THROW(store->for_each_chunk(StateAccess::read_write, [](const StateChunk&) {}));
}

TEST_P(DiskTierTest, ShardsComeBackAsTheyWent) {
  const std::vector<std::int64_t> bytes{100'000, 4096, 1, 250'001, 77'777};
  const auto disk = make_disk_shard_store(bytes, {.tier = options(), .buffers = 2});
  const auto host = make_host_shard_store(bytes);
  for (int round = 0; round < 4; ++round) {
    for (int i = 0; i < 5; ++i) {
      disk->fetch((i + 1) % 5);
      auto *a = static_cast<unsigned char*>(disk->acquire(i)), *b = static_cast<unsigned char*>(host->acquire(i));
      const auto size = static_cast<std::size_t>(bytes[static_cast<std::size_t>(i)]);
      ASSERT_EQ(std::memcmp(a, b, size), 0) << "round " << round << " shard " << i;
      const bool change = (round + i) % 2 == 0;
      if (change) {
        for (std::size_t k = 0; k < size; ++k)
          a[k] = b[k] = static_cast<unsigned char>(k * 7 + static_cast<std::size_t>(round * 5 + i));
      }
      disk->release(i, change);
      host->release(i, change);
    }
  }
}

TEST_P(DiskTierTest, ShardFaultsAreRefused) {
  const auto store = make_disk_shard_store({8192, 8192, 8192}, {.tier = options(), .buffers = 2});
  for (const int shard : {0, 1, 2}) {
    store->acquire(shard);
    store->release(shard, true);
  }
  std::fstream file(only_file(), std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(100);
  file.put(1);
  file.close();
  EXPECT_THAT(message_of([&] { store->acquire(0); }), HasSubstr("came back other"));
  store->acquire(1);
  store->acquire(2);
  EXPECT_THROW(store->acquire(0), InternalError);  // two buffers, both held
}

INSTANTIATE_TEST_SUITE_P(Io, DiskTierTest, ::testing::Values(BlockIoKind::automatic, BlockIoKind::threads),
                         [](const auto& info) { return info.param == BlockIoKind::threads ? "threads" : "uring"; });

}  // namespace
}  // namespace zero
