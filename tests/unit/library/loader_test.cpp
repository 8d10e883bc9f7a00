#include "zero/library/include/zero/loader.h"

#include <gmock/gmock.h>
#include <torch/data/datasets.h>
#include <torch/data/samplers.h>
#include <torch/data/transforms.h>

#include <mutex>
#include <set>

#include "base/error.h"
#include "tests/unit/library/worlds.h"
#include "tests/unit/message_of.h"

namespace zero {

struct Sentence {  // a user's type of batch
  at::Tensor ids, lengths;
};
template <>
struct BatchRows<Sentence> {
  static std::int64_t count(const Sentence& batch) { return row_count(batch.ids); }
  static Sentence take(const Sentence& batch, RowRange rows, torch::Device device) {
    return {take_rows(batch.ids, rows, device), take_rows(batch.lengths, rows, device)};
  }
};

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Example = torch::data::Example<>;

/// Sample i is ([i, i + 0.5], 10 i); it keeps in mind which samples were read.
class Numbers : public torch::data::datasets::Dataset<Numbers> {
 public:
  explicit Numbers(std::size_t size) : size_(size), read_(std::make_shared<std::multiset<std::size_t>>()) {}
  Example get(std::size_t index) override {
    const std::lock_guard<std::mutex> lock(*mutex_);
    read_->insert(index);
    return {at::tensor({double(index), double(index) + 0.5}), at::scalar_tensor(std::int64_t(10 * index), at::kLong)};
  }
  std::optional<std::size_t> size() const override { return size_; }
  const std::multiset<std::size_t>& read() const { return *read_; }

 private:
  std::size_t size_;
  std::shared_ptr<std::multiset<std::size_t>> read_;
  std::shared_ptr<std::mutex> mutex_ = std::make_shared<std::mutex>();
};

auto stacked(const Numbers& numbers) { return Numbers(numbers).map(torch::data::transforms::Stack<>()); }

std::vector<std::int64_t> numbers_of(const at::Tensor& values) {
  const at::Tensor flat = values.to(at::kLong).contiguous();
  return {flat.data_ptr<std::int64_t>(), flat.data_ptr<std::int64_t>() + flat.numel()};
}

/// The targets of each iteration, gathered over the processes, as the first of them saw them.
template <typename MakeLoader>
std::vector<std::vector<std::int64_t>> epochs_of(int size, const MakeLoader& make, int epochs = 1) {
  std::vector<std::vector<std::int64_t>> batches;
  on_worlds(size, [&](const World& world) {
    auto&& loader = make(world);
    for (int epoch = 0; epoch < epochs; ++epoch) {
      if (epoch > 0) loader.set_epoch(epoch);
      for (auto& batch : loader) {
        EXPECT_EQ(batch.data.size(1), 2);
        EXPECT_TRUE(batch.data.select(1, 0).mul(10).to(at::kLong).equal(batch.target));
        const at::Tensor all = world.gather_for_metrics(batch.target);
        EXPECT_EQ(loader.global_rows(), all.size(0));
        EXPECT_TRUE(all.narrow(0, loader.rows().begin, loader.rows().count).equal(batch.target));
        if (world.is_main()) batches.push_back(numbers_of(all));
      }
    }
  });
  return batches;
}

TEST(RowsOfProcess, AreContiguousAndEven) {
  for (int size = 1; size <= 5; ++size)
    for (std::int64_t rows = 0; rows <= 12; ++rows) {
      std::int64_t next = 0;
      for (int rank = 0; rank < size; ++rank) {
        const RowRange mine = rows_of_process(rows, rank, size);
        EXPECT_EQ(mine.begin, next);
        EXPECT_TRUE(mine.count == rows / size || mine.count == rows / size + 1);
        next += mine.count;
      }
      EXPECT_EQ(next, rows);
    }
}

TEST(ShardedLoader, GivesEachSampleOnceAndTheLastBatchRagged) {
  for (int size = 1; size <= 4; ++size) {
    const auto batches = epochs_of(size, [](const World& world) {
      return shard(torch::data::make_data_loader<torch::data::samplers::SequentialSampler>(stacked(Numbers(10)), 4),
                   world);
    });
    EXPECT_THAT(batches, ElementsAre(ElementsAre(0, 10, 20, 30), ElementsAre(40, 50, 60, 70), ElementsAre(80, 90)));
  }
}

TEST(ShardedLoader, FewerSamplesThanProcessesLeaveEmptyRowsOfTheSameKind) {
  on_worlds(4, [](const World& world) {
    auto loader = torch::data::make_data_loader<torch::data::samplers::SequentialSampler>(stacked(Numbers(2)), 8);
    int iterations = 0;
    for (auto& batch : shard(loader, world)) {
      ++iterations;
      EXPECT_EQ(batch.data.sizes(), (std::vector<std::int64_t>{world.rank() < 2 ? 1 : 0, 2}));
      EXPECT_EQ(batch.data.scalar_type(), at::kDouble);
      EXPECT_EQ(batch.target.scalar_type(), at::kLong);
    }
    EXPECT_EQ(iterations, 1);
  });
}

// Modules that refuse a batch of no rows get one, which neither trains nor counts.
TEST(ShardedLoader, NeverEmptyGivesTheFirstRowWhereThereIsNone) {
  on_worlds(4, [](const World& world) {
    const auto expect = [&](auto&& loader) {
      std::vector<std::int64_t> seen;
      for (auto& batch : loader) {
        const std::int64_t own = loader.rows().count;
        EXPECT_EQ(batch.data.size(0), std::max<std::int64_t>(own, 1));
        if (own == 0) EXPECT_EQ(batch.target.template item<std::int64_t>() / 10 % 5, 0);  // a batch's first
        const auto all = numbers_of(world.gather_for_metrics(batch.target.narrow(0, 0, own)));
        seen.insert(seen.end(), all.begin(), all.end());
      }
      EXPECT_THAT(seen, ElementsAre(0, 10, 20, 30, 40, 50, 60));
    };
    expect(shard(torch::data::make_data_loader<torch::data::samplers::SequentialSampler>(stacked(Numbers(7)), 5), world,
                 {.never_empty = true}));
    expect(make_data_loader(stacked(Numbers(7)), world, {.batch_size = 5, .never_empty = true}));
    ShuffledSampler order(7);
    auto loader = torch::data::make_data_loader(stacked(Numbers(7)), order, 5);
    auto batches = shard(loader, world, {.never_empty = true}, order);
    batches.set_epoch(3);
    EXPECT_EQ(order.epoch(), 3);
  });
}

TEST(ShardedLoader, TakesRangesOfTensorsSamplesPairsTuplesMapsAndOnesOwn) {
  on_worlds(2, [](const World& world) {
    const at::Tensor rows = at::arange(5);
    const std::vector<std::int64_t> mine =
        world.is_main() ? std::vector<std::int64_t>{0, 1, 2} : std::vector<std::int64_t>{3, 4};
    for (auto& batch : shard(std::vector{rows}, world)) EXPECT_EQ(numbers_of(batch), mine);
    for (auto& batch : shard(std::vector<std::vector<int>>{{0, 1, 2, 3, 4}}, world))
      EXPECT_EQ(std::vector<std::int64_t>(batch.begin(), batch.end()), mine);
    for (auto& [first, second] : shard(std::vector{std::pair{rows, rows.view({5, 1})}}, world)) {
      EXPECT_EQ(numbers_of(first), mine);
      EXPECT_EQ(numbers_of(second), mine);
    }
    for (auto& [first, second, third] : shard(std::vector{std::tuple{rows, rows, rows}}, world))
      EXPECT_EQ(numbers_of(third), mine);
    for (auto& batch : shard(std::vector{std::map<std::string, at::Tensor>{{"ids", rows}}}, world))
      EXPECT_EQ(numbers_of(batch.at("ids")), mine);
    for (auto& batch : shard(std::vector{torch::data::TensorExample(rows)}, world))
      EXPECT_EQ(numbers_of(batch.data), mine);
    for (auto& batch : shard(std::vector{Sentence{rows, rows}}, world)) EXPECT_EQ(numbers_of(batch.lengths), mine);
    std::vector<at::Tensor> kept{rows};  // a range of one's own is not copied, nor are rows
    for (auto& batch : shard(kept, world)) batch.add_(0).mul_(-1);
    world.barrier();
    EXPECT_EQ(rows.sum().item<std::int64_t>(), world.is_main() ? -3 + 7 : 3 - 7);
  });
}

TEST(ShardedLoader, RefusesPartsOfDifferentLengthsAndScalars) {
  on_worlds(1, [](const World& world) {
    auto first_of = [&](auto batch) {
      return message_of<InputError>([&] { shard(std::vector{batch}, world).begin(); });
    };
    EXPECT_THAT(first_of(std::pair{at::arange(3), at::arange(4)}), HasSubstr("parts of 3 and 4 rows"));
    EXPECT_THAT(first_of(at::scalar_tensor(1)), HasSubstr("a tensor without dimensions"));
  });
}

TEST(ShardedLoader, LoadersThatDifferAreRefusedOnEveryProcess) {
  on_worlds(3, [](const World& world) {
    std::vector<at::Tensor> batches(world.rank() == 2 ? 1 : 2, at::arange(4));
    const std::string message = message_of<InputError>([&] {
      for (auto& batch : shard(batches, world)) (void)batch;
    });
    EXPECT_THAT(message, HasSubstr("process 0 has a batch of 4 rows, process 2 no more batches"));
    EXPECT_THAT(message, HasSubstr("give every process the whole loader"));
  });
}

TEST(ShardedLoader, AReadErrorIsThrownOnAllProcesses) {
  on_worlds(2, [](const World& world) {
    std::vector<std::pair<at::Tensor, at::Tensor>> batches{{at::arange(4), at::arange(world.is_main() ? 4 : 3)}};
    auto sharded = shard(batches, world);
    if (world.is_main()) {
      try {
        sharded.begin();
        ADD_FAILURE() << "nothing was thrown";
      } catch (const Error& error) {
        EXPECT_THAT(error.what(),
                    HasSubstr("process 1 could not read its next batch: a batch of the loader holds parts"));
        EXPECT_EQ(error.code(), ExitCode::bad_input);
      }
    } else
      EXPECT_THAT(message_of<InputError>([&] { sharded.begin(); }), HasSubstr("parts of 4 and 3 rows"));
  });
}

TEST(ShardedLoader, EpochsReachTheSamplerThatIsNamed) {
  ShuffledSampler alone(10, 7);
  std::vector<std::vector<std::size_t>> expected;
  for (int epoch = 0; epoch < 3; ++epoch) {
    alone.set_epoch(epoch);
    alone.reset();
    while (auto batch = alone.next(4)) expected.push_back(*batch);
  }
  for (int size = 1; size <= 3; ++size) {
    std::vector<std::vector<std::int64_t>> batches;
    on_worlds(size, [&](const World& world) {
      ShuffledSampler order(10, 7);
      auto loader = torch::data::make_data_loader(stacked(Numbers(10)), order, 4);
      auto sharded = shard(loader, world, order);
      for (int epoch = 0; epoch < 3; ++epoch) {
        sharded.set_epoch(epoch);
        for (auto& batch : sharded) {
          const at::Tensor all = world.gather_for_metrics(batch.target);
          if (world.is_main()) batches.push_back(numbers_of(all / 10));
        }
      }
    });
    ASSERT_EQ(batches.size(), expected.size());
    for (std::size_t b = 0; b < batches.size(); ++b)
      EXPECT_EQ(std::vector<std::size_t>(batches[b].begin(), batches[b].end()), expected[b]);
  }
  on_worlds(1, [](const World& world) {
    std::vector<at::Tensor> nothing;
    auto sharded = shard(nothing, world);
    EXPECT_THAT(message_of<InputError>([&] { sharded.set_epoch(1); }), HasSubstr("name the sampler"));
  });
}

TEST(DrawAsMain, DrawsAlikeAndLeavesEachItsOwnState) {
  // The threads of a simulated world share one generator, as processes do not: one world alone is looked at here, the
  // processes in tests/mpi.
  on_worlds(1, [](const World& world) {
    torch::manual_seed(5);
    const at::Tensor expected = at::randperm(20);
    torch::manual_seed(5);
    at::Tensor drawn;
    detail::draw_as_main(world, [&] { drawn = at::randperm(20); });
    EXPECT_TRUE(drawn.equal(expected));
  });
}

TEST(ShuffledSampler, IsAPermutationThatFollowsFromSeedAndEpoch) {
  const auto order = shuffled_order(1000, 1, 0);
  EXPECT_EQ(order, shuffled_order(1000, 1, 0));
  EXPECT_NE(order, shuffled_order(1000, 1, 1));
  EXPECT_NE(order, shuffled_order(1000, 2, 0));
  EXPECT_EQ(std::set<std::size_t>(order.begin(), order.end()).size(), 1000u);
  EXPECT_EQ(*std::max_element(order.begin(), order.end()), 999u);
  EXPECT_THAT(shuffled_order(5, 0, 0), ElementsAre(0, 4, 1, 2, 3));  // the order of all versions and machines
}

TEST(RowLoader, GivesWhatShardGivesAndReadsItsRowsAlone) {
  for (int size = 1; size <= 4; ++size)
    for (int workers : {0, 2}) {
      const LoaderOptions options{.batch_size = 4, .shuffle = true, .seed = 3, .workers = workers};
      const auto batches = epochs_of(
          size, [&](const World& world) { return make_data_loader(stacked(Numbers(10)), world, options); }, 2);
      std::vector<std::vector<std::int64_t>> expected;
      for (int epoch = 0; epoch < 2; ++epoch) {
        const auto order = shuffled_order(10, 3, epoch);
        for (std::size_t begin : {0, 4, 8}) {
          expected.emplace_back();
          for (std::size_t i = begin; i < std::min<std::size_t>(begin + 4, 10); ++i)
            expected.back().push_back(10 * std::int64_t(order[i]));
        }
      }
      EXPECT_EQ(batches, expected) << size << " processes, " << workers << " workers";
    }
  on_worlds(2, [](const World& world) {
    const Numbers numbers(8);
    auto loader = make_data_loader(stacked(numbers), world, {.batch_size = 4});
    EXPECT_EQ(loader.size(), 2);
    for (auto& batch : loader) EXPECT_EQ(batch.data.size(0), 2);
    if (world.is_main())
      EXPECT_THAT(numbers.read(), ElementsAre(0, 1, 4, 5));
    else
      EXPECT_THAT(numbers.read(), ElementsAre(2, 3, 6, 7));
  });
}

TEST(RowLoader, DropsALastBatchAndGivesEmptyRows) {
  on_worlds(3, [](const World& world) {
    auto dropping = make_data_loader(stacked(Numbers(7)), world, {.batch_size = 3, .drop_last = true});
    EXPECT_EQ(dropping.size(), 2);
    int batches = 0;
    for (auto& batch : dropping) batches += int(batch.data.size(0));
    EXPECT_EQ(batches, 2);
    auto ragged = make_data_loader(stacked(Numbers(7)), world, {.batch_size = 3});
    EXPECT_EQ(ragged.size(), 3);
    std::vector<std::int64_t> rows;
    for (auto& batch : ragged) rows.push_back(batch.data.size(0));
    EXPECT_THAT(rows, ElementsAre(1, 1, world.is_main() ? 1 : 0));
  });
}

TEST(RowLoader, AnEpochThatWasLeftEarlyBeginsAgain) {
  on_worlds(2, [](const World& world) {
    auto loader = make_data_loader(stacked(Numbers(8)), world, {.batch_size = 2, .workers = 1});
    for (int epoch = 0; epoch < 2; ++epoch)
      for (auto& batch : loader) {
        EXPECT_EQ(batch.target.item<std::int64_t>(), 10 * world.rank());
        break;
      }
  });
}

// Without set_epoch() a loop that came to its end is followed by the next epoch.
TEST(RowLoader, GoesFromEpochToEpoch) {
  on_worlds(2, [](const World& world) {
    auto loader = make_data_loader(stacked(Numbers(6)), world, {.batch_size = 6, .shuffle = true, .seed = 3});
    for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
      EXPECT_EQ(loader.epoch(), epoch);
      for (auto& batch : loader) {
        const auto order = shuffled_order(6, 3, epoch);
        EXPECT_EQ(numbers_of(world.gather_for_metrics(batch.target) / 10),
                  std::vector<std::int64_t>(order.begin(), order.end()));
      }
    }
  });
}

/// The targets of `loader`'s epochs below 2, of all processes; stops and saves before batch `stop`, 0: never.
template <typename Loader>
std::vector<std::int64_t> targets_of(const World& world, Loader& loader, int stop, NamedTensors& state) {
  std::vector<std::int64_t> targets;
  for (auto epoch = loader.epoch(); epoch < 2; ++epoch) {
    loader.set_epoch(epoch);
    for (auto& batch : loader) {
      const std::vector<std::int64_t> all = numbers_of(world.gather_for_metrics(batch.target));
      targets.insert(targets.end(), all.begin(), all.end());
      if (--stop != 0) continue;
      state = loader.state();
      return targets;
    }
  }
  return targets;
}

template <typename MakeLoader>
void expect_to_go_on(const MakeLoader& make) {
  for (const int size : {1, 2, 3})
    on_worlds(size, [&](const World& world) {
      NamedTensors state;
      auto&& whole = make(world);
      const std::vector<std::int64_t> undisturbed = targets_of(world, whole, 0, state);
      EXPECT_EQ(undisturbed.size(), 20u);
      for (int stop = 1; stop <= 6; ++stop) {
        auto&& first = make(world);
        std::vector<std::int64_t> targets = targets_of(world, first, stop, state);
        auto&& second = make(world);
        second.load_state(state);
        const std::vector<std::int64_t> rest = targets_of(world, second, 0, state);
        targets.insert(targets.end(), rest.begin(), rest.end());
        EXPECT_EQ(targets, undisturbed) << size << " processes, stopped after batch " << stop;
      }
    });
}

TEST(RowLoader, GoesOnWhereItStood) {
  for (const int workers : {0, 2})
    expect_to_go_on([&](const World& world) {
      return make_data_loader(stacked(Numbers(10)), world,
                              {.batch_size = 4, .shuffle = true, .seed = 3, .workers = workers});
    });
}

TEST(ShardedLoader, GoesOnWhereItStood) {
  std::vector<ShuffledSampler> orders;
  orders.reserve(100);
  std::mutex mutex;
  expect_to_go_on([&](const World& world) {
    const std::lock_guard<std::mutex> lock(mutex);
    ShuffledSampler& order = orders.emplace_back(10, 7);
    return shard(torch::data::make_data_loader(stacked(Numbers(10)), order, 4), world, order);
  });
}

// The samples that are left are those that were not read, whatever the batches.
TEST(RowLoader, GoesOnWithBatchesOfAnotherSizeAndReadsNoSampleTwice) {
  on_worlds(2, [](const World& world) {
    NamedTensors state;
    auto first = make_data_loader(stacked(Numbers(10)), world, {.batch_size = 4});
    targets_of(world, first, 1, state);
    const Numbers numbers(10);
    auto second = make_data_loader(stacked(numbers), world, {.batch_size = 3});
    second.load_state(state);
    second.set_epoch(0);
    for (auto& batch : second) (void)batch;
    if (world.is_main()) EXPECT_THAT(numbers.read(), ElementsAre(4, 5, 7, 8));
    EXPECT_EQ(second.epoch(), 1);
  });
}

// Saved between two epochs; a loop over the epoch that has ended has nothing left, one over another has all.
TEST(RowLoader, AnEpochThatHadEndedIsDone) {
  on_worlds(1, [](const World& world) {
    const auto make = [&] { return make_data_loader(stacked(Numbers(4)), world, {.batch_size = 2}); };
    const auto batches_of = [](auto& loader) {
      int batches = 0;
      for (auto& batch : loader) batches += int(batch.data.size(0) > 0);
      return batches;
    };
    auto ended = make();
    EXPECT_EQ(batches_of(ended), 2);
    auto loader = make();
    loader.load_state(ended.state());
    EXPECT_EQ(loader.epoch(), 1);
    loader.set_epoch(0);
    EXPECT_EQ(batches_of(loader), 0);
    EXPECT_EQ(batches_of(loader), 2);
    EXPECT_EQ(loader.epoch(), 2);
    loader.load_state(ended.state());
    loader.set_epoch(3);
    EXPECT_EQ(batches_of(loader), 2);
    loader.load_state(ended.state());
    EXPECT_EQ(batches_of(loader), 2);
    EXPECT_EQ(loader.epoch(), 2);
  });
}

TEST(RowLoader, RefusesTheStateOfOtherSamples) {
  on_worlds(1, [](const World& world) {
    const auto state = make_data_loader(Numbers(4), world, {.batch_size = 2, .seed = 1}).state();
    const auto refusal = [&](const LoaderOptions& options, std::size_t samples) {
      auto loader = make_data_loader(Numbers(samples), world, options);
      return message_of<InputError>([&] { loader.load_state(state); });
    };
    EXPECT_THAT(refusal({.batch_size = 2, .seed = 1}, 5),
                HasSubstr("of a loader with samples = 4, and this one has samples = 5"));
    EXPECT_THAT(refusal({.batch_size = 2, .seed = 2}, 4), HasSubstr("seed = 1"));
    EXPECT_THAT(refusal({.batch_size = 2, .shuffle = true, .seed = 1}, 4), HasSubstr("shuffle = 0"));
    std::vector<at::Tensor> batches(3, at::arange(2));
    auto longer = shard(batches, world);
    for (auto& batch : longer) (void)batch;
    batches.pop_back();
    const NamedTensors of_longer{{"epoch", at::zeros({}, at::kLong)},
                                 {"batches", at::full({}, 3, at::kLong)},
                                 {"ended", at::zeros({}, at::kLong)},
                                 {"draws", longer.state().at("draws")}};
    auto shorter = shard(batches, world);
    shorter.load_state(of_longer);
    EXPECT_THAT(message_of<InputError>([&] { shorter.begin(); }), HasSubstr("is 1 batches past the end"));
    EXPECT_THAT(message_of<InputError>([&] { shorter.load_state(state); }), HasSubstr("it has no batches"));
  });
}

TEST(RowLoader, RefusesOptionsThatMakeNoSenseAndDatasetsThatDiffer) {
  on_worlds(2, [](const World& world) {
    EXPECT_THAT(message_of<InputError>([&] { make_data_loader(Numbers(4), world, {.batch_size = 0}); }),
                HasSubstr("batch_size is 0"));
    EXPECT_THAT(message_of<InputError>(
                    [&] { make_data_loader(Numbers(std::size_t(4 + world.rank())), world, {.batch_size = 2}); }),
                HasSubstr("process 0 has 4 samples in its dataset, process 1 5"));
    EXPECT_THAT(message_of<InputError>([&] {
                  make_data_loader(Numbers(4), world,
                                   {.batch_size = 2, .shuffle = true, .seed = std::uint64_t(world.rank())});
                }),
                HasSubstr("0 as its seed"));
    EXPECT_THAT(message_of<InputError>(
                    [&] { make_data_loader(Numbers(4), world, {.batch_size = 2, .shuffle = world.is_main()}); }),
                HasSubstr("process 0 has 1 as its shuffle, process 1 0"));
    EXPECT_THAT(message_of<InputError>(
                    [&] { make_data_loader(Numbers(3), world, {.batch_size = 2, .drop_last = world.is_main()}); }),
                HasSubstr("1 as its drop_last"));
  });
}

TEST(RowLoader, EpochsThatDifferAreRefused) {
  on_worlds(2, [](const World& world) {
    auto rows = make_data_loader(stacked(Numbers(4)), world, {.batch_size = 2, .shuffle = true});
    rows.set_epoch(world.rank());
    EXPECT_THAT(message_of<InputError>([&] { rows.begin(); }), HasSubstr("process 0 has 0 as its epoch, process 1 1"));
    ShuffledSampler order(4);
    auto loader = torch::data::make_data_loader(stacked(Numbers(4)), order, 2);
    auto sharded = shard(*loader, world, order);
    sharded.set_epoch(world.rank());
    EXPECT_THAT(message_of<InputError>([&] { sharded.begin(); }), HasSubstr("process 1 1"));
    sharded.set_epoch(2);
    sharded.begin();
  });
}

}  // namespace
}  // namespace zero
