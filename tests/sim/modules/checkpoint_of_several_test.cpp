// Several models, a loader and values of the program's own as one state, whole or not at all.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/data/datasets.h>
#include <torch/data/transforms.h>
#include <torch/torch.h>

#include <limits>

#include "base/error.h"
#include "base/log.h"
#include "tests/sim/memory_disk.h"
#include "tests/sim/modules/library_world.h"
#include "tests/unit/message_of.h"
#include "tests/unit/temporary_folder.h"
#include "zero/library/include/zero/checkpoint.h"
#include "zero/library/include/zero/loader.h"

namespace zero::testing {
namespace {

using ::testing::HasSubstr;
using Linear = torch::nn::Linear;

Linear layer(std::int64_t in, std::int64_t out, double seed) {
  Linear net(in, out);
  const torch::NoGradGuard no_grad;
  for (at::Tensor& parameter : net->parameters())
    parameter.copy_((torch::arange(parameter.numel()) + seed).sin().view(parameter.sizes()));
  net->register_buffer("save", torch::zeros({1}));
  return net;
}

/// A generator and a critic in training, over a loader that shuffles.
struct Game {
  static constexpr int epochs = 2, samples = 11;

  Game(const World& world, const std::string& folder, int stage = 3, double seed = 0)
      : world(world),
        g(layer(2, 3, seed), world, {.stage = stage}),
        c(layer(3, 1, seed + 1), world, {.stage = stage == 0 ? 3 : 0}),
        checkpoint(folder, world) {
    g.optimizer(AdamWOptions{.lr = 1e-2}), c.optimizer(SgdOptions{.lr = 1e-2});
    checkpoint.add("generator", g).add("critic", c).add("loader", loader).add("losses", losses);
  }

  void step(const at::Tensor& batch) {
    const double rows = double(batch.size(0));
    const auto real = torch::cat({batch, batch, batch}, 1);
    const at::Tensor fake = g->forward(torch::cat({batch, batch.sin()}, 1));
    c.backward((c->forward(fake.detach()) - c->forward(real)).sum() / std::max(rows, 1.0), rows);
    c.optimizer().step();
    const Frozen frozen = c.freeze();
    const at::Tensor loss = -c->forward(fake).sum() / std::max(rows, 1.0);
    g.backward(loss, rows);
    g.optimizer().step();
    losses.push_back(world.sum(loss.detach() * rows).item<double>());
  }

  /// Goes on to the end, or saves and leaves off after so many batches; returns all losses since the first start.
  void train(std::int64_t most) {
    if (checkpoint.exists()) checkpoint.load();
    for (auto epoch = loader.epoch(); epoch < epochs; ++epoch) {
      loader.set_epoch(epoch);
      for (auto& batch : loader) {
        step(batch.data);
        if (std::int64_t(losses.size()) == most) return checkpoint.save();
      }
      ++ends;
    }
  }

  const World& world;
  Sharded<Linear> g, c;
  struct Losses : std::vector<double> {
    NamedTensors state() const { return {{"all", torch::tensor(*this, torch::kDouble)}}; }
    void load_state(const NamedTensors& state) {
      const at::Tensor& all = state.at("all");
      assign(all.data_ptr<double>(), all.data_ptr<double>() + all.numel());
    }
  } losses;
  RowLoader<torch::data::datasets::MapDataset<torch::data::datasets::TensorDataset,
                                              torch::data::transforms::Stack<torch::data::TensorExample>>>
      loader = make_data_loader(
          torch::data::datasets::TensorDataset(torch::arange(samples).to(torch::kFloat).view({samples, 1}) / samples)
              .map(torch::data::transforms::Stack<torch::data::TensorExample>()),
          world, {.batch_size = 4, .shuffle = true, .seed = 5});
  int ends = 0;  // of epochs, in this program
  Checkpoint checkpoint;
};

/// Losses of an undisturbed game, as `ranks` see them.
std::vector<double> undisturbed(int ranks, int stage) {
  const TemporaryFolder folder;
  std::vector<double> losses;
  on_ranks(ranks, [&](const World& world) {
    Game game(world, folder / "states", stage);
    game.train(0);
    if (world.is_main()) losses = game.losses;
  });
  return losses;
}

// Stopped after each of its batches in turn, the last ones of epochs too.
TEST(CheckpointOfSeveral, GoesOnInTheMiddleOfAnEpochAsIfItHadNotStopped) {
  for (const auto& [ranks, stage] : std::vector<std::pair<int, int>>{{1, 3}, {2, 0}, {2, 3}}) {
    const std::vector<double> want = undisturbed(ranks, stage);
    ASSERT_EQ(want.size(), 6u);
    for (std::int64_t stop = 1; stop <= 6; ++stop) {
      const TemporaryFolder folder;
      on_ranks(ranks, [&](const World& world) { Game(world, folder / "states", stage).train(stop); });
      on_ranks(ranks, [&](const World& world) {
        Game game(world, folder / "states", stage, 7);
        game.train(0);
        EXPECT_EQ(std::vector<double>(game.losses), want) << ranks << " ranks, stopped after " << stop;
        EXPECT_EQ(game.ends, stop <= 3 ? 2 : 1);  // what follows the last batch of an epoch is done once
      });
    }
  }
}

TEST(CheckpointOfSeveral, GoesOnInOtherLayouts) {
  const std::vector<double> want = undisturbed(1, 3);
  for (const auto& [ranks, stage, then] : std::vector<std::array<int, 3>>{{2, 3, 1}, {1, 0, 3}}) {
    const TemporaryFolder folder;
    on_ranks(ranks, [&](const World& world) { Game(world, folder / "states", stage).train(2); });
    on_ranks(then, [&](const World& world) {
      Game game(world, folder / "states", 3 - stage, 7);
      game.train(0);
      ASSERT_EQ(game.losses.size(), want.size());
      for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(game.losses[i], want[i], 1e-5);
    });
  }
}

TEST(CheckpointOfSeveral, IsOfOneSaveWhereverASaveIsKilled) {
  const auto program = [](MemoryDisk& disk, CallPlan plan, const std::function<void(Game&)>& body) {
    const auto files = [&](int rank) { return std::shared_ptr<FileCalls>(disk.calls(rank == 0 ? &plan : nullptr)); };
    try {
      on_ranks(2, files, [&](const World& world) {
        Game game(world, "/disk/states");
        body(game);
      });
    } catch (const std::exception&) {
      EXPECT_GE(plan.kill_at, 0);
    }
  };
  const auto mark = [](Game& game, double save) {
    for (auto* model : {&game.g, &game.c}) model->unwrap()->named_buffers()["save"].fill_(save);
    game.losses.assign(1, save);
  };
  MemoryDisk before("/disk");
  program(before, {}, [&](Game& game) {
    mark(game, 1);
    game.checkpoint.save();
  });
  int kills = 0;
  for (double found = 1; found < 2; ++kills) {
    MemoryDisk disk(before);
    program(disk, {.kill_at = kills}, [&](Game& game) {
      game.checkpoint.load();
      game.step(torch::ones({2, 1}));
      mark(game, 2);
      game.checkpoint.save();
    });
    found = 0;
    program(disk, {}, [&](Game& game) {
      ASSERT_TRUE(game.checkpoint.exists());
      game.checkpoint.load();
      const double g = game.g.unwrap()->named_buffers()["save"].item<double>(),
                   c = game.c.unwrap()->named_buffers()["save"].item<double>();
      EXPECT_EQ(g, c);
      EXPECT_EQ(game.losses, std::vector<double>{g});
      EXPECT_EQ(game.g.optimizer().steps_taken(), g - 1);
      if (game.world.is_main()) found = g;
    });
    ASSERT_GE(found, 1) << "killed at call " << kills;
  }
  EXPECT_GT(kills, 20);
}

TEST(CheckpointOfSeveral, KeepsValuesOfEveryKind) {
  const TemporaryFolder folder;
  struct Values {
    int epoch = 0;
    std::uint64_t seed = 0;
    std::int64_t tokens = 0;
    bool warm = false;
    double best = 0;
    float rate = 0;
    std::string name;
    at::Tensor ids = torch::zeros({2, 3}, torch::kLong), fresh, half = torch::zeros({}, torch::kHalf);
    NamedTensors average, none;

    void add_to(Checkpoint& checkpoint) {
      checkpoint.add("epoch", epoch).add("seed", seed).add("tokens", tokens).add("warm", warm).add("best", best);
      checkpoint.add("rate", rate).add("name", name).add("ids", ids).add("fresh", fresh).add("half", half);
      checkpoint.add("average", average).add("none", none);
    }
  };
  on_ranks(2, [&](const World& world) {
    Sharded<Linear> model(layer(2, 2, 0), world);
    model.optimizer(SgdOptions());
    Values values{7,
                  std::numeric_limits<std::uint64_t>::max(),
                  std::int64_t{1} << 60,
                  true,
                  0.1,
                  0.2F,
                  "grüne Wiese",
                  torch::arange(6).view({2, 3}),
                  torch::tensor({true, false}),
                  torch::full({}, 0.5, torch::kHalf),
                  {{"a.weight", torch::ones({2})}, {"b", torch::zeros({0, 3})}},
                  {}};
    if (!world.is_main()) values.best = 9;  // the main process's counts
    Checkpoint checkpoint(folder.path(), world);
    checkpoint.add("net", model);
    values.add_to(checkpoint);
    checkpoint.save();
    const at::Tensor memory = values.ids;
    values.ids.zero_();
    checkpoint.load();
    EXPECT_EQ(memory.sum().item<int>(), 15);  // in place
  });
  on_ranks(3, [&](const World& world) {
    Sharded<Linear> model(layer(2, 2, 0), world);
    model.optimizer(SgdOptions());
    Values values;
    values.none["former"] = torch::ones({1});
    Checkpoint checkpoint(folder.path(), world);
    checkpoint.add("net", model);
    values.add_to(checkpoint);
    checkpoint.load();
    EXPECT_EQ(values.epoch, 7);
    EXPECT_EQ(values.seed, std::numeric_limits<std::uint64_t>::max());
    EXPECT_EQ(values.tokens, std::int64_t{1} << 60);
    EXPECT_TRUE(values.warm);
    EXPECT_EQ(values.best, 0.1);
    EXPECT_EQ(values.rate, 0.2F);
    EXPECT_EQ(values.name, "grüne Wiese");
    EXPECT_TRUE(values.ids.equal(torch::arange(6).view({2, 3})));
    EXPECT_TRUE(values.fresh.equal(torch::tensor({true, false})));
    EXPECT_EQ(values.half.item<double>(), 0.5);
    EXPECT_EQ(values.average.size(), 2u);
    EXPECT_EQ(values.average.at("b").sizes(), (std::vector<std::int64_t>{0, 3}));
    EXPECT_TRUE(values.none.empty());
  });
}

TEST(CheckpointOfSeveral, RefusesOtherNamesAndKinds) {
  const TemporaryFolder folder;
  const auto with = [&](const std::function<void(Checkpoint&, const World&)>& use) {
    on_ranks(2, [&](const World& world) {
      Checkpoint checkpoint(folder / "states", world);
      use(checkpoint, world);
    });
  };
  const auto model_of = [](const World& world) {
    auto model = std::make_unique<Sharded<Linear>>(layer(2, 2, 0), world);
    model->optimizer(SgdOptions{.lr = 0.1});
    return model;
  };
  int aims = 1;
  double best = 3;
  std::string text = "no";
  struct Picky {
    NamedTensors state() const { return {}; }
    void load_state(const NamedTensors&) { throw InputError("other samples"); }
  } picky;
  with([&](Checkpoint& checkpoint, const World& world) {
    const auto a = model_of(world), b = model_of(world);
    EXPECT_THAT(message_of<InputError>([&] { checkpoint.save(); }), HasSubstr("there is no model in it"));
    checkpoint.add("a", *a).add("b", *b).add("best", best).add("aims", aims);
    EXPECT_THAT(message_of<InputError>([&] { checkpoint.add("best", best); }), HasSubstr("the name is taken"));
    EXPECT_THAT(message_of<InputError>([&] { checkpoint.add("x/y", best); }), HasSubstr("has no slash"));
    EXPECT_THAT(message_of<InputError>([&] { checkpoint.load(); }), HasSubstr("no checkpoint there"));
    checkpoint.save();
    EXPECT_THAT(message_of<InputError>([&] { a->save_state(folder / "states"); }), HasSubstr("would be replaced"));
    checkpoint.save();
  });
  aims = 2;
  // And what was to be loaded is as it was.
  const auto refusal = [&](const std::function<void(Checkpoint&, Sharded<Linear>&, Sharded<Linear>&)>& add) {
    std::string said;
    with([&](Checkpoint& checkpoint, const World& world) {
      const auto a = model_of(world), b = model_of(world);
      add(checkpoint, *a, *b);
      a->backward((*a)->forward(torch::ones({1, 2})).sum());
      a->optimizer().step();
      const at::Tensor weight = (*a)->weight.detach().clone();
      const std::string message = message_of<InputError>([&] { checkpoint.load(); });
      EXPECT_TRUE((*a)->weight.equal(weight)) << message;
      EXPECT_EQ(a->optimizer().steps_taken(), 1) << message;
      EXPECT_EQ(aims, 2) << message;
      if (world.is_main()) said = message;
    });
    return said;
  };
  EXPECT_THAT(refusal([&](auto& checkpoint, auto& a, auto&) { checkpoint.add("a", a).add("best", best); }),
              HasSubstr("holds the states of the models a, b, and those of the models a are asked for"));
  EXPECT_THAT(refusal([&](auto& checkpoint, auto& a, auto& b) { checkpoint.add("a", a).add("b", b); }),
              HasSubstr("holds the values aims, best, and none are asked for"));
  EXPECT_THAT(refusal([&](auto& checkpoint, auto& a, auto& b) {
                checkpoint.add("a", a).add("b", b).add("aims", aims).add("best", text);
              }),
              HasSubstr("the state holds Double [] under the name best, and a text is asked for"));
  EXPECT_THAT(refusal([&](auto& checkpoint, auto& a, auto& b) {
                checkpoint.add("a", a).add("b", b).add("aims", aims).add("best", picky);
              }),
              HasSubstr("other samples"));
  EXPECT_THAT(message_of<InputError>([&] {
                with([&](Checkpoint&, const World& world) { model_of(world)->load_state(folder / "states"); });
              }),
              HasSubstr("and those of one model without a name are asked for"));
  with([&](Checkpoint& checkpoint, const World& world) {
    auto gone = model_of(world);
    checkpoint.add("a", *gone);
    gone.reset();
    EXPECT_THAT(message_of<InputError>([&] { checkpoint.save(); }), HasSubstr("the model a is gone"));
  });
}

// A target net that no optimizer trains goes with its net.
TEST(CheckpointOfSeveral, TakesModelsWithoutAnOptimizer) {
  const TemporaryFolder folder;
  on_ranks(2, [&](const World& world) {
    Sharded<Linear> net(layer(2, 2, 0), world), target(layer(2, 2, 5), world);
    net.optimizer(SgdOptions());
    Checkpoint checkpoint(folder.path(), world);
    checkpoint.add("net", net).add("target", target);
    checkpoint.save();
  });
  on_ranks(1, [&](const World& world) {
    Sharded<Linear> net(layer(2, 2, 1), world), target(layer(2, 2, 2), world);
    net.optimizer(SgdOptions());
    Checkpoint checkpoint(folder.path(), world);
    checkpoint.add("net", net).add("target", target);
    checkpoint.load();
    EXPECT_TRUE(net->weight.equal(layer(2, 2, 0)->weight));
    EXPECT_TRUE(target->weight.equal(layer(2, 2, 5)->weight));
  });
}

}  // namespace
}  // namespace zero::testing
