// At every instant, whatever happens to the program, a folder of states holds its own models' whole states.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cerrno>
#include <filesystem>

#include "base/error.h"
#include "base/log.h"
#include "tests/sim/memory_disk.h"
#include "tests/sim/modules/library_world.h"
#include "tests/unit/message_of.h"
#include "tests/unit/temporary_folder.h"
#include "zero/checkpoint/save_checkpoint.h"
#include "zero/library/include/zero/checkpoint.h"
#include "zero/library/optimizer_options_of.h"
#include "zero/library/sharded_impl.h"

namespace zero::testing {
namespace state_folder_test {

using ::testing::HasSubstr;
using Linear = torch::nn::Linear;
using Model = Sharded<Linear>;

/// A layer with a buffer that says which save it is of.
Linear layer(double weight) {
  Linear net(3, 2);
  const torch::NoGradGuard no_grad;
  for (at::Tensor& parameter : net->parameters()) parameter.fill_(weight);
  net->register_buffer("save", torch::zeros({1}));
  return net;
}

at::Tensor save_of(Model& model) { return model.unwrap()->named_buffers()["save"]; }
double sum_of(Model& model) { return model->weight.sum().item<double>(); }

void one_step(Model& model) {
  model.backward(model->forward(torch::ones({2, 3})).sum());
  model.optimizer().step();
}

struct ActorImpl : torch::nn::Module {
  ActorImpl() { weight = register_parameter("weight", torch::ones({2})); }
  at::Tensor weight;
};
TORCH_MODULE(Actor);
struct CriticImpl : torch::nn::Module {
  CriticImpl() { weight = register_parameter("weight", torch::ones({2})); }
  explicit CriticImpl(const std::string& name) : Module(name) {
    weight = register_parameter("weight", torch::ones({2}));
  }
  at::Tensor weight;
};
TORCH_MODULE(Critic);

TEST(StateFolder, HoldsOneModelsStates) {
  const TemporaryFolder folder;
  for (const int ranks : {1, 2})
    on_ranks(ranks, [&](const World& world) {
      Model a(layer(1), world), b(layer(2), world);
      a.optimizer(SgdOptions()), b.optimizer(SgdOptions());
      one_step(a), one_step(b);
      const std::string states = folder / text("critics", ranks);
      a.save_state(states);
      const double of_a = sum_of(a), of_b = sum_of(b);
      for (const std::string& name : {states, states + "/", folder / text("x/../critics", ranks)})
        EXPECT_THAT(message_of<InputError>([&] { b.save_state(name); }),
                    HasSubstr("holds the state of another model of this program, which would be replaced"));
      EXPECT_THAT(message_of<InputError>([&] { b.load_state(states); }), HasSubstr("a folder of its own"));
      EXPECT_EQ(sum_of(b), of_b);
      one_step(a);
      a.load_state(states);
      EXPECT_EQ(sum_of(a), of_a);
      a.save_state(states);
      b.save_state(states + "-2");
    });
}

TEST(StateFolder, IsTakenOverByALoadWhereItsModelIsGone) {
  const TemporaryFolder folder;
  on_ranks(2, [&](const World& world) {
    {
      Model former(layer(1), world);
      former.optimizer(SgdOptions());
      one_step(former);
      former.save_state(folder.path());
    }
    Model model(layer(2), world);
    model.optimizer(SgdOptions());
    one_step(model);
    EXPECT_THAT(message_of<InputError>([&] { model.save_state(folder.path()); }), HasSubstr("would be replaced"));
    EXPECT_EQ(model.load_state(folder.path()), 1);
    model.save_state(folder.path());
  });
}

TEST(StateFolder, KnowsTheTypeOfItsModel) {
  const TemporaryFolder folder;
  on_ranks(2, [&](const World& world) {
    Sharded<Actor> actor(Actor(), world);
    actor.optimizer(SgdOptions());
    actor.save_state(folder.path());
  });
  const std::string refusal = message_of<InputError>([&] {
    on_ranks(2, [&](const World& world) {
      Sharded<Critic> model(Critic(), world);
      model.optimizer(SgdOptions());
      model.load_state(folder.path());
    });
  });
  EXPECT_THAT(refusal,
              ::testing::AllOf(HasSubstr("holds the state of a "), HasSubstr("ActorImpl"), HasSubstr("CriticImpl")));
  on_ranks(2, [&](const World& world) {  // a class that was renamed
    Sharded<Critic> renamed(Critic(Actor()->name()), world);
    renamed.optimizer(SgdOptions());
    EXPECT_EQ(renamed.load_state(folder.path()), 0);
  });
}

/// Writes a state with that many bytes of random state per process.
void write_state(const World& world, const std::string& folder, std::int64_t bytes) {
  ShardedModel::Impl model(layer(1).ptr(), world, {});
  model.optimizer = optimizer_options_of(AdamWOptions());
  model.trains = true;
  model.divide();
  model.keep_buffers();
  CheckpointModels held(std::vector<CheckpointModel>{{model.sharded->states(), "", model.module->name()}});
  held.kept.push_back(
      {text("random:", world.size()), at::zeros({world.size() * bytes}, at::kByte), /*required=*/false});
  FileCalls& files = *world.impl().files;
  CheckpointFolders folders(files, folder);
  world.on_main([&] { folders.make_root(); });
  RunDescription run;
  run.ranks = world.size();
  save_checkpoint(held, run, RunPosition(), folders, files, *world.impl().control);
}

// A GPU process has a longer random state than a CPU process.
TEST(StateFolder, LeavesRandomNumbersOfAnotherDeviceAlone) {
  const auto random_state = [] { return at::detail::getDefaultCPUGenerator().get_state(); };
  for (const std::int64_t bytes : {100, 6000}) {
    const TemporaryFolder folder;
    on_ranks(2, [&](const World& world) { write_state(world, folder.path(), bytes); });
    for (const int ranks : {1, 2})
      on_ranks(ranks, [&](const World& world) {
        Model model(layer(2), world);
        model.optimizer(AdamWOptions());
        const at::Tensor before = random_state();
        EXPECT_EQ(model.load_state(folder.path()), 0);
        EXPECT_EQ(sum_of(model), 6);
        EXPECT_TRUE(random_state().equal(before)) << bytes << " bytes, " << ranks << " ranks";
      });
  }
}

// A job that was started twice.
TEST(StateFolder, IsUsedByOneProgramAtATime) {
  const TemporaryFolder folder;
  on_ranks(2, [&](const World& world) {
    Model model(layer(1), world);
    model.optimizer(SgdOptions());
    EXPECT_FALSE(model.has_state(folder / "states"));  // and is not made by the question
    EXPECT_FALSE(std::filesystem::exists(folder / "states"));
    one_step(model);
    model.save_state(folder / "states");
    if (world.is_main())
      on_ranks(2, [&](const World& second) {
        Model other(layer(2), second);
        other.optimizer(SgdOptions());
        for (const std::function<void()>& use : std::initializer_list<std::function<void()>>{
                 [&] { other.save_state(folder / "states"); }, [&] { other.load_state(folder / "states"); },
                 [&] { (void)other.has_state(folder / "states"); }})
          EXPECT_THAT(message_of<InputError>(use), HasSubstr("another running program keeps its states there"));
      });
    world.barrier();
    EXPECT_EQ(model.load_state(folder / "states"), 1);
  });
  on_ranks(1, [&](const World& world) {  // which has ended
    Model model(layer(1), world);
    model.optimizer(SgdOptions());
    EXPECT_EQ(model.load_state(folder / "states"), 1);
  });
}

TEST(StateFolder, IsNamedAlikeByAllProcesses) {
  const TemporaryFolder folder;
  EXPECT_THAT(message_of<InputError>([&] {
                on_ranks(2, [&](const World& world) {
                  Model model(layer(1), world);
                  model.optimizer(SgdOptions());
                  model.save_state(folder / text("states-", world.rank()));
                });
              }),
              HasSubstr("process 1 names the folder "));
}

/// A program on two ranks over the disk, with the main process's calls planned. It may end in the middle.
void run_on(MemoryDisk& disk, const CallPlan& plan, const std::function<void(const World&)>& program) {
  CallPlan own = plan;
  const auto files = [&](int rank) { return std::shared_ptr<FileCalls>(disk.calls(rank == 0 ? &own : nullptr)); };
  try {
    on_ranks(2, files, program);
  } catch (const std::exception&) {
    EXPECT_TRUE(plan.kill_at >= 0 || plan.fail_at >= 0);
  }
}

/// Loads the state and saves it again at the same step.
void save_again(const World& world) {
  Model model(layer(1), world);
  model.optimizer(SgdOptions());
  model.load_state("/disk/states");
  save_of(model).fill_(2);
  model.save_state("/disk/states");
}

/// The save that a next program finds; -1: none. `step`: it is of.
double found_on(MemoryDisk& disk, std::int64_t step = 1) {
  double found = -1;
  run_on(disk, {}, [&](const World& world) {
    Model model(layer(9), world);
    model.optimizer(SgdOptions());
    if (!model.has_state("/disk/states")) return;
    EXPECT_EQ(model.load_state("/disk/states"), step);
    if (world.is_main()) found = save_of(model).item<double>();
  });
  return found;
}

/// A disk with one state, of step 1 and save 1.
MemoryDisk disk_with_a_state(bool exchanges = true) {
  MemoryDisk disk("/disk");
  disk.exchanges = exchanges;
  run_on(disk, {}, [](const World& world) {
    Model model(layer(1), world);
    model.optimizer(SgdOptions());
    one_step(model);
    save_of(model).fill_(1);
    model.save_state("/disk/states");
  });
  return disk;
}

TEST(StateFolder, HasAStateWhereverASecondSaveOfTheStepIsKilled) {
  for (const bool exchanges : {true, false}) {
    const MemoryDisk before = disk_with_a_state(exchanges);
    int kills = 0;
    for (double found = 1; found < 2; ++kills) {
      MemoryDisk disk(before);
      run_on(disk, {.kill_at = kills}, save_again);
      found = found_on(disk);
      ASSERT_GE(found, 1) << "killed at call " << kills;
    }
    EXPECT_GT(kills, 20);
  }
}

TEST(StateFolder, HasAStateWhereverACallOfASecondSaveFails) {
  for (const bool exchanges : {true, false}) {
    const MemoryDisk before = disk_with_a_state(exchanges);
    for (const bool fails_on : {false, true})
      for (int call = 0; call < 60; ++call) {
        MemoryDisk disk(before);
        run_on(disk, {.fail_at = call, .fail_with = ENOSPC, .fails = fails_on ? Fails::changes : Fails::once},
               save_again);
        ASSERT_GE(found_on(disk), 1) << "failed at call " << call;
      }
  }
}

}  // namespace state_folder_test
}  // namespace zero::testing
