// A run that resumes: the same bits in the same layout, the same states and losses in any other.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include <unistd.h>

#include <filesystem>

#include "base/error.h"
#include "base/files/durable_file.h"
#include "offload/disk/disk_shard_store.h"
#include "offload/disk/disk_tier.h"
#include "offload/memory/host_shard_store.h"
#include "offload/shard_store.h"
#include "tests/sim/checkpoint_bench.h"
#include "tests/sim/every_optimizer.h"
#include "tests/sim/matrix.h"
#include "tests/unit/message_of.h"
#include "tests/unit/temporary_folder.h"
#include "zero/checkpoint/resume_states.h"

namespace zero::testing {
namespace checkpoint_test {

enum class Home : std::uint8_t { memory, host, through_host, disk };

constexpr int half = 3, whole = 6;

struct Half {
  int stage, ranks;
  Home home = Home::memory;
  int shard_degree = 0;
};

std::function<OffloadPolicy(int)> policy_of(const Half& half, const std::string& folder) {
  if (half.home == Home::memory) return {};
  return [=](int rank) {
    OffloadPolicy policy;
    policy.through_host = half.home == Home::through_host;
    DiskTierOptions disk;
    disk.directory = folder;
    disk.rank = rank;
    disk.chunk_bytes = 5 * 4096 * 8;  // several chunks a shard
    const std::shared_ptr<DiskTier> tier = half.home == Home::disk ? DiskTier::create(disk) : nullptr;
    policy.optimizer = [tier](const std::string& name, std::int64_t elements, const std::vector<StateSpec>& states) {
      return tier ? tier->make_store(name, elements, states) : host_state_stores()(name, elements, states);
    };
    if (half.home != Home::through_host)
      policy.weights = [tier, disk](const std::vector<std::int64_t>& bytes) {
        return tier ? make_disk_shard_store(bytes, {disk}, tier) : make_host_shard_store(bytes);
      };
    return policy;
  };
}

class Bench {
 public:
  explicit Bench(const RunOptions& run)
      : run_(run), folder_(::testing::TempDir() + "/resume_" + std::to_string(::getpid())) {
    run_.steps = whole;
  }
  ~Bench() { std::filesystem::remove_all(folder_); }

  RunResult undisturbed(const Half& layout) { return run_training(options(layout)); }

  /// Saves in the middle; the states then.
  States save(const Half& layout) {
    States states;
    RunOptions run = options(layout);
    run.steps = half;
    run_training(run, [&](Engine& engine, int, int step) {
      if (step != half) return;
      add_states(engine, states);
      save_at(engine, step, *disk_.calls());
    });
    return states;
  }

  /// The same with an asynchronous save.
  States save_behind(const Half& layout) {
    States states;
    RunOptions run = options(layout);
    const auto calls = disk_.calls();
    std::vector<std::unique_ptr<SaveBehind>> saves(std::size_t(layout.ranks));
    run_training(run, [&](Engine& engine, int rank, int step) {
      std::unique_ptr<SaveBehind>& save = saves[std::size_t(rank)];
      if (step == half) {
        add_states(engine, states);
        save = std::make_unique<SaveBehind>(engine, step, *calls);
      }
      if (step == half + 1) save->tend();
      if (step != whole) return;
      save->save.finish();
      save.reset();
    });
    return states;
  }

  RunResult resume(const Half& layout, States& states) {
    RunOptions run = options(layout);
    run.first_step = half;
    return run_training(run, [&](Engine& engine, int, int step) {
      if (step != half) return;
      restore_from(engine, step, *disk_.calls());
      EXPECT_EQ(engine.steps_done(), half);
      add_states(engine, states);
    });
  }

 private:
  RunOptions options(const Half& layout) const {
    RunOptions run = run_;
    run.stage = layout.stage;
    run.ranks = layout.ranks;
    run.shard_degree = layout.shard_degree;
    run.policy_of = policy_of(layout, folder_);
    return run;
  }

  RunOptions run_;
  std::string folder_;
  MemoryDisk disk_{"/disk"};
};

/// The largest difference over the steps after the resumption, and over the weights.
double difference_after(const RunResult& undisturbed, const RunResult& resumed) {
  RunResult a = undisturbed, b = resumed;
  for (RunResult* result : {&a, &b}) {
    result->losses.erase(result->losses.begin(), result->losses.begin() + half);
    result->norms.erase(result->norms.begin(), result->norms.begin() + half);
  }
  return largest_difference(a, b);
}

RunOptions base(at::ScalarType compute, at::ScalarType master, bool lora) {
  RunOptions run;
  run.config = small_config(/*tied=*/!lora);
  run.compute = compute;
  run.master = master;
  if (!lora) return run;
  run.lora.emplace();
  run.lora->r = 3;
  run.lora->target_modules = {"all-linear"};
  run.lora->dropout = 0.2;
  return run;
}

// An orthogonal array of strength 2: each pair of two columns' levels stands in one of the 16 rows (a, b), over GF(4).
int times(int x, int y) {
  static const int table[4][4] = {{0, 0, 0, 0}, {0, 1, 2, 3}, {0, 2, 3, 1}, {0, 3, 1, 2}};
  return table[x][y];
}
int level(int row, int column) {
  const int a = row / 4, b = row % 4;
  return column == 0 ? a : b ^ times(a, column - 1);
}

// One rank starts after the last tensor, which ends inside a block; another rank has a part of that tensor.
TEST(BlocksOfStates, AreSavedWhereverShardsEnd) {
  RunOptions run = base(at::kFloat, at::kFloat, false);
  run.config = config_for(optimizer_row("adamw8bit").defaults, true);
  run.config.vocab_size = 65;  // 65 x 64 elements: 16 blocks and a quarter
  run.optimizer = optimizer_row("adamw8bit").defaults;
  run.global_batch = 8;
  for (const int ranks : {3, 8}) {
    Bench bench(run);
    const States then = ranks == 3 ? bench.save({3, ranks}) : bench.save_behind({3, ranks});
    States now;
    bench.resume({1, 2}, now);
    expect_equal(then, now);
  }
}

TEST(OtherOptimizers, AreRefusedByName) {
  for (const char* const other : {"muon", "adamw8bit", "adafactor", "prodigy", "lion"}) {
    RunOptions run = base(at::kDouble, at::kDouble, false);
    run.config = config_for(optimizer_row(other).defaults, true);
    run.steps = 1;
    MemoryDisk disk("/disk");
    run_training(run, [&](Engine& engine, int, int step) {
      if (step == 1) save_at(engine, 1, *disk.calls());
    });
    run.optimizer = optimizer_row(other).defaults;
    run.steps = 0;
    run_training(run, [&](Engine& engine, int, int) {
      SavedStates saved(*disk.calls(), CheckpointFolders(*disk.calls(), "/disk/checkpoints").path(1));
      EXPECT_NO_THROW(check_same_tensors(saved, engine));
      EXPECT_THROW(check_same_states(saved, engine), InputError) << other;
    });
  }
}

// AdamW's first moment and Lion's momentum share a name. A manifest without the states' optimizer names that of the
// run.
TEST(OtherOptimizers, AreRefusedEvenIfTheirStatesHaveTheSameNames) {
  RunOptions run = base(at::kDouble, at::kDouble, false);
  run.steps = 1;
  MemoryDisk disk("/disk");
  run_training(run, [&](Engine& engine, int, int step) {
    if (step == 1) save_at(engine, 1, *disk.calls());
  });
  const auto calls = disk.calls();
  const std::string folder = CheckpointFolders(*calls, "/disk/checkpoints").path(1);
  const auto refusal = [&](const char* name) {
    run.optimizer = optimizer_row(name).defaults;
    run.steps = 0;
    std::string said;
    run_training(run, [&](Engine& engine, int rank, int) {
      try {
        SavedStates saved(*disk.calls(), folder);
        check_same_states(saved, engine);
      } catch (const InputError& error) {
        if (rank == 0) said = error.what();
      }
    });
    return said;
  };
  EXPECT_EQ(refusal("adamw"), "");
  EXPECT_THAT(refusal("lion"), ::testing::HasSubstr("adamw wrote the states of model."));
  const auto rewrite = [&](const std::function<void(Manifest&)>& change) {
    Manifest manifest = read_manifest(*calls, folder);
    change(manifest);
    const std::string content = format_manifest(manifest);
    calls->remove(folder + "/manifest.json");
    DurableFile file(*calls, folder + "/manifest.json", DurableFile::Buffered{});
    file.append(content.data(), std::int64_t(content.size()));
    file.finish();
  };
  rewrite([](Manifest& manifest) {
    for (SavedGroup& group : manifest.groups) group.optimizer.clear();
    manifest.run.settings = {{"optimizer.name", "\"adamw\""}};
  });
  EXPECT_EQ(refusal("adamw"), "");
  EXPECT_THAT(refusal("lion"), ::testing::HasSubstr("is of a run with adamw, and this one has lion"));
}

// The whole model with every optimizer, and adapters with the first one.
class AnyLayout : public ::testing::TestWithParam<std::tuple<int, int>> {};

TEST_P(AnyLayout, ResumesWhatAnyOtherSaved) {
  const auto [row, kind] = GetParam();
  const bool lora = kind == int(every_optimizer().size());
  RunOptions run = base(at::kDouble, at::kDouble, lora);
  if (!lora) run.optimizer = every_optimizer()[std::size_t(kind)];
  if (!lora) run.config = config_for(run.optimizer, true);
  if (!lora) run.lr = run.optimizer.lr;
  Half saving{level(row, 0), 1 + level(row, 1)}, loading{level(row, 2), 1 + level(row, 3), Home(level(row, 4))};
  saving.home = Home(level(row, 4) ^ 1);
  if (saving.ranks == 4 && row % 2) saving.shard_degree = 2;
  if (loading.ranks == 4 && row % 3) loading.shard_degree = 2;
  Bench bench(run);
  const RunResult undisturbed = bench.undisturbed(saving);
  const States then = row % 2 ? bench.save_behind(saving) : bench.save(saving);
  States now;
  const RunResult resumed = bench.resume(loading, now);
  expect_equal(then, now);
  EXPECT_LT(difference_after(undisturbed, resumed), rounding_of(run.optimizer));
}

/// Half of the rows for each optimizer, in turns. Both halves have every level of every column, and rows of both
/// parities, which save in both ways.
std::vector<std::tuple<int, int>> rows_and_kinds() {
  const std::set<int> half{0, 1, 2, 4, 5, 6, 11, 15};
  std::vector<std::tuple<int, int>> all;
  for (int kind = 0; kind <= int(every_optimizer().size()); ++kind)
    for (int row = 0; row < 16; ++row)
      if (whole_matrix() || half.contains(row) == (kind % 2 == 0)) all.emplace_back(row, kind);
  return all;
}

INSTANTIATE_TEST_SUITE_P(Pairs, AnyLayout, ::testing::ValuesIn(rows_and_kinds()));

// stage, type of computing, home, LoRA
class SameLayout : public ::testing::TestWithParam<std::tuple<int, at::ScalarType, Home, bool>> {};

TEST_P(SameLayout, GivesTheSameBits) {
  const auto [stage, compute, home, lora] = GetParam();
  for (const int ranks : {2, 3}) {
    const Half layout{stage, ranks, home};
    RunOptions run = base(compute, at::kFloat, lora);
    run.micro_batches = ranks == 2 ? 2 : 1;
    Bench bench(run);
    const RunResult undisturbed = bench.undisturbed(layout);
    const States then = bench.save(layout);
    States now;
    const RunResult resumed = bench.resume(layout, now);
    expect_equal(then, now);
    EXPECT_EQ(difference_after(undisturbed, resumed), 0);
  }
}

// The states are those of the moment when the save began, whatever later steps change.
TEST_P(SameLayout, GivesTheSameBitsAfterAnAsynchronousSave) {
  const auto [stage, compute, home, lora] = GetParam();
  const Half layout{stage, 2, home};
  Bench bench(base(compute, at::kFloat, lora));
  const RunResult undisturbed = bench.undisturbed(layout);
  const States then = bench.save_behind(layout);
  States now;
  const RunResult resumed = bench.resume(layout, now);
  expect_equal(then, now);
  EXPECT_EQ(difference_after(undisturbed, resumed), 0);
}

INSTANTIATE_TEST_SUITE_P(
    Layouts, SameLayout,
    ::testing::ValuesIn(pairs_of(std::vector{0, 1, 2, 3}, std::vector{at::kFloat, at::kBFloat16, at::kHalf},
                                 std::vector{Home::memory, Home::through_host, Home::disk}, std::vector{false, true})));

// For example, nodes with local folders under the same name.
TEST(Resume, RefusesRanksThatReadDifferentCheckpoints) {
  RunOptions run = base(at::kFloat, at::kFloat, false);
  run.ranks = 2;
  run.steps = 1;
  MemoryDisk first("/disk"), second("/disk");
  const auto save_to = [&](MemoryDisk& disk, double lr) {
    run.lr = lr;
    run_training(run, [&](Engine& engine, int, int step) {
      if (step == 1) save_at(engine, step, *disk.calls());
    });
  };
  save_to(first, 0.01);
  save_to(second, 0.02);
  run.steps = 0;
  const auto resume_from = [&](MemoryDisk& of_rank_1) {
    run_training(run, [&](Engine& engine, int rank, int) {
      const auto calls = (rank == 0 ? first : of_rank_1).calls();
      CheckpointFolders folders(*calls, "/disk/checkpoints");
      resume_states(engine, folders, *calls, engine.host());
    });
  };
  EXPECT_NO_THROW(resume_from(first));
  MemoryDisk empty("/disk");
  EXPECT_THAT(
      message_of<InputError>([&] { resume_from(empty); }),
      ::testing::HasSubstr("/disk/checkpoints/step-00000001 is absent on rank 1: every rank reads it, so it has "
                           "to be on a file system that all nodes share: "));
  EXPECT_EQ(CheckpointFolders(*first.calls(), "/disk/checkpoints").steps().size(), 1u);  // not set aside
  EXPECT_THAT(message_of<InputError>([&] { resume_from(second); }),
              ::testing::HasSubstr("rank 1 reads another checkpoint there than rank 0"));
}

TEST(Resume, WaitsForACheckpointThatARankSeesLate) {
  struct LateCalls final : FileCalls {
    int look(const std::string& path, Links links, FileFacts& facts) override {
      if (!path.ends_with("manifest.json") || looks++ >= 3) return FileCalls::look(path, links, facts);
      errno = ENOENT;
      return -1;
    }
    void pause(std::chrono::milliseconds) override {}
    using FileCalls::look;
    int looks = 0;
  };
  TemporaryFolder folder;
  RunOptions run = base(at::kFloat, at::kFloat, false);
  run.ranks = 2;
  run.steps = 1;
  run_training(run, [&](Engine& engine, int rank, int step) {
    if (step != 1) return;
    FileCalls calls;
    CheckpointFolders written(calls, folder.path("checkpoints"));
    save_checkpoint(engine, {}, position_at(engine, step), written, calls, engine.host(), {});
    LateCalls late;
    FileCalls& seen = rank == 0 ? calls : late;
    CheckpointFolders folders(seen, written.root());
    EXPECT_EQ(resume_states(engine, folders, seen, engine.host()).steps, 1);
    if (rank == 1) {
      EXPECT_GT(late.looks, 3);
    }
  });
}

TEST(Resume, RefusesTheStatesOfAnotherModel) {
  Bench bench(base(at::kFloat, at::kFloat, false)), other(base(at::kFloat, at::kFloat, true));
  MemoryDisk disk("/disk");
  RunOptions run = base(at::kFloat, at::kFloat, false);
  run.steps = 0;
  run_training(run, [&](Engine& engine, int, int step) { save_at(engine, step, *disk.calls()); });
  run = base(at::kFloat, at::kFloat, true);
  run.steps = 0;
  EXPECT_THROW(run_training(run, [&](Engine& engine, int, int step) { restore_from(engine, step, *disk.calls()); }),
               InputError);
}

}  // namespace checkpoint_test
}  // namespace zero::testing
