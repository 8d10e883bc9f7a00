#include "offload/disk/disk_tier.h"
#include "offload/kernels/adamw_kernel.h"

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
using testing::HasSubstr;

/// A directory of its own for each test, and both ways to the disk.
class DiskTierTest : public testing::TestWithParam<BlockIoKind> {
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

StepFactors factors(std::int64_t step) {
  return {.lr = 1e-2, .weight_decay = 0.1, .gradient_scale = 0.5, .step = step, .kernel = adamw_update};
}

at::Tensor draw(std::int64_t n, std::uint64_t seed) {
  auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  return at::randn({n}, generator, at::kFloat);
}

void set_master(OptimizerStore& store, const at::Tensor& from) {
  store.for_each_chunk(StateAccess::write, [&](const StateChunk& c) {
    std::memcpy(c.master, from.data_ptr<float>() + c.begin, static_cast<std::size_t>(c.end - c.begin) * 4);
  });
}

TEST_P(DiskTierTest, UpdatesAsResidentToTheLastBit) {
  const std::int64_t n = 200'003;  // about ten chunks, the last one odd
  const std::vector<DecayRange> ranges{{0, 70'001, true}, {70'001, 90'000, false}, {90'000, n, true}};
  const auto tier = DiskTier::create(options());
  for (const bool has_master : {true, false}) {
    const auto store = tier->make_store("unit-0", n, at::kFloat, has_master);
    const at::Tensor start = draw(n, 1);
    at::Tensor master = start.clone(), weights = has_master ? at::zeros({n}, at::kBFloat16) : start.clone();
    at::Tensor weights_disk = weights.clone();
    ResidentOptimizerStore resident(has_master ? master : at::Tensor(), at::zeros({n}), at::zeros({n}));
    if (has_master) set_master(*store, start);
    for (int step = 1; step <= 4; ++step) {
      const at::Tensor gradient = draw(n, 10 + static_cast<std::uint64_t>(step)).to(at::kBFloat16);
      const auto spans = [&](const at::Tensor& w) {
        return UpdateSpans{gradient.data_ptr(), at::kBFloat16, w.data_ptr(), w.scalar_type()};
      };
      resident.update(factors(step), ranges, spans(weights));
      if (step % 2) store->prefetch();
      store->update(factors(step), ranges, spans(weights_disk));
      ASSERT_TRUE(at::equal(weights, weights_disk)) << "step " << step;
    }
    std::int64_t seen = 0;
    if (has_master) {
      store->for_each_chunk(StateAccess::read, [&](const StateChunk& c) {
        ASSERT_EQ(c.begin, seen);
        seen = c.end;
        ASSERT_EQ(
            std::memcmp(c.master, master.data_ptr<float>() + c.begin, static_cast<std::size_t>(c.end - c.begin) * 4),
            0);
      });
      EXPECT_EQ(seen, n);
    }
  }
}

TEST_P(DiskTierTest, SeveralUnitsShareTheBuffersWhateverTheirSize) {
  MemoryTracker tracker;
  const TrackerScope scope(tracker);
  const auto tier = DiskTier::create(options());
  std::vector<std::unique_ptr<OptimizerStore>> stores;
  std::vector<at::Tensor> weights, gradients;
  for (int unit = 0; unit < 3; ++unit) {
    const std::int64_t n = std::array<std::int64_t, 3>{1, 500'000, 21'000}[static_cast<std::size_t>(unit)];
    stores.push_back(tier->make_store("unit-" + std::to_string(unit), n, at::kFloat, true));
    weights.push_back(at::zeros({n}));
    gradients.push_back(at::ones({n}));
  }
  EXPECT_EQ(tracker.live(MemoryCategory::optimizer), 4 << 18);
  for (int step = 1; step <= 2; ++step) {
    for (const auto& store : stores) store->prefetch();
    for (std::size_t unit = 0; unit < 3; ++unit) {
      stores[unit]->update({.lr = 0.1, .weight_decay = 0, .step = step, .kernel = adamw_update}, {},
                           {gradients[unit].data_ptr(), at::kFloat, weights[unit].data_ptr(), at::kFloat});
    }
  }
  for (const at::Tensor& w : weights)
    EXPECT_LT((w + 0.2).abs().max().item<float>(), 1e-5f);  // Adam on a constant gradient
  EXPECT_EQ(tracker.peak(MemoryCategory::optimizer), 4 << 18);
}

TEST_P(DiskTierTest, ShortTransfersAreContinued) {
  FaultPlan plan{.shorten_every = 2};
  DiskTierOptions faulty = options();
  faulty.wrap = with_faults(plan);
  const auto tier = DiskTier::create(faulty);
  const auto store = tier->make_store("unit", 100'000, at::kFloat, true);
  const at::Tensor values = draw(100'000, 4);
  set_master(*store, values);
  store->for_each_chunk(StateAccess::read, [&](const StateChunk& c) {
    ASSERT_EQ(std::memcmp(c.master, values.data_ptr<float>() + c.begin, static_cast<std::size_t>(c.end - c.begin) * 4),
              0);
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
        const auto store = tier->make_store("unit", 100'000, at::kFloat, true);
        for (int pass = 0; pass < 3; ++pass) store->for_each_chunk(StateAccess::read_write, [](const StateChunk&) {});
      });
      EXPECT_THAT(message, HasSubstr("unit.zero-state"));
      EXPECT_THAT(message, HasSubstr(std::strerror(code)));
    }
  }
}

TEST_P(DiskTierTest, CutFileIsRefused) {
  const auto tier = DiskTier::create(options());
  const auto store = tier->make_store("unit", 100'000, at::kFloat, true);
  const auto pass = [&] { store->for_each_chunk(StateAccess::read_write, [](const StateChunk&) {}); };
  pass();
  fs::resize_file(only_file(), 5000);
  EXPECT_THAT(message_of(pass), HasSubstr("was cut"));
}

TEST_P(DiskTierTest, FileCutDuringAPassIsRefused) {
  const auto tier = DiskTier::create(options());
  const auto store = tier->make_store("unit", 200'000, at::kFloat, true);
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
  const auto store = tier->make_store("unit", 1000, at::kFloat, true);
  fs::remove(only_file());
  EXPECT_THAT(message_of([&] { store->for_each_chunk(StateAccess::read, [](const StateChunk&) {}); }),
              HasSubstr("was removed"));
}

TEST_P(DiskTierTest, ForeignBytesAreNoticed) {
  const auto tier = DiskTier::create(options());
  const auto store = tier->make_store("unit", 100'000, at::kFloat, true);
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
    const auto fits = tier->make_store("fits", 40'000, at::kFloat, true);
    fits->for_each_chunk(StateAccess::read_write, [](const StateChunk&) {});
    tier->make_store("too-large", 1'000'000, at::kFloat, true);
  });
  ::umount(small.c_str());
  EXPECT_THAT(message, HasSubstr("the disk is full"));
  EXPECT_THAT(message, HasSubstr("12042240"));
}

TEST_P(DiskTierTest, VisitThatThrowsLeavesTheTierUsable) {
  const auto tier = DiskTier::create(options());
  const auto store = tier->make_store("unit", 100'000, at::kFloat, true);
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

INSTANTIATE_TEST_SUITE_P(Io, DiskTierTest, testing::Values(BlockIoKind::automatic, BlockIoKind::threads),
                         [](const auto& info) { return info.param == BlockIoKind::threads ? "threads" : "uring"; });

}  // namespace
}  // namespace zero
