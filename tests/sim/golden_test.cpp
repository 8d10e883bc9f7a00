// The golden cases, made by transformers: logits and gradients of the first batch, loss and norm of every step, and the
// final weights, at every stage and with 1 to 4 ranks.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "comm/sim_world.h"
#include "models/hf_directory.h"
#include "models/model.h"
#include "models/safetensors.h"
#include "models/weight_source.h"
#include "zero/engine.h"
#include "zero/optim/clip.h"
#include "zero/optim/schedule.h"

#include <ATen/ATen.h>

namespace zero::testing {
namespace {

struct Case {
  explicit Case(const std::string& name) : folder(std::string(ZERO_TEST_DATA) + "/" + name), expected(folder + "/expect.safetensors") {
    settings = nlohmann::json::parse(std::ifstream(folder + "/case.json"));
    std::ifstream file(folder + "/tokens.bin", std::ios::binary);
    for (std::uint16_t token; file.read(reinterpret_cast<char*>(&token), 2);) tokens.push_back(token);
  }
  Batch batch(std::int64_t first_window, std::int64_t rows) const {
    const std::int64_t seq = settings["seq"];
    Batch batch{at::empty({rows, seq}, at::kLong), at::empty({rows, seq}, at::kLong), {}, {}};
    for (std::int64_t b = 0; b < rows; ++b)
      for (std::int64_t t = 0; t < seq; ++t) {
        batch.ids.data_ptr<std::int64_t>()[b * seq + t] = tokens[(first_window + b) * seq + t];
        batch.targets.data_ptr<std::int64_t>()[b * seq + t] = tokens[(first_window + b) * seq + t + 1];
      }
    return batch;
  }
  std::string folder;
  SafetensorsFile expected;
  nlohmann::json settings;
  std::vector<std::int64_t> tokens;
};

double relative(double value, double expected) { return std::abs(value - expected) / std::max(std::abs(expected), 1e-12); }

void train_and_compare(const Case& golden, Engine& engine, int rank, int micro_batches) {
  const auto& s = golden.settings;
  Communicator& communicator = engine.communicator();
  const std::int64_t global = s["batch"], steps = s["steps"], rows = global / (communicator.size() * micro_batches);
  const double tokens = double(global) * double(s["seq"]);
  const ScheduleOptions schedule{ScheduleType::cosine, s["lr"], steps, s["warmup_steps"], s["min_lr_ratio"]};
  const at::Tensor losses = golden.expected.read("step.loss"), norms = golden.expected.read("step.grad_norm"), rates = golden.expected.read("step.lr");
  const at::Tensor logits = golden.expected.read("logits");
  for (std::int64_t step = 0; step < steps; ++step) {
    double sum = 0;
    for (int a = 0; a < micro_batches; ++a) {
      const std::int64_t in_step = (a * communicator.size() + rank) * rows;
      const Batch batch = golden.batch(step * global + in_step, rows);
      Pass pass;
      pass.batch = &batch;
      if (step == 0) {
        const at::Tensor got = engine.evaluate(pass, [](Unit& head, const at::Tensor& x) { return logits_of(head, x); });
        EXPECT_LT((got - logits.narrow(0, in_step, rows)).abs().max().item<double>(), 3e-5);
      }
      const at::Tensor loss = engine.forward(pass, {a == 0, a + 1 == micro_batches});
      engine.backward(loss, 1.0 / tokens);
      sum += loss.item<double>();
    }
    if (step == 0) {
      engine.export_gradients([&](const TensorSpec& spec, const at::Tensor& value) {
        const at::Tensor want = golden.expected.read("grad." + spec.name);
        EXPECT_LT((value - want).abs().max().item<double>(), 3e-5 * want.abs().max().item<double>()) << spec.name;
      });
    }
    const double norm = engine.gradient_norm(), rate = learning_rate(schedule, step);
    const at::Tensor total = at::full({1}, sum, at::kDouble);
    communicator.all_reduce(total, {at::kDouble, false});
    EXPECT_LT(relative(total.item<double>() / tokens, losses[step].item<double>()), 1e-5);
    EXPECT_LT(relative(norm, norms[step].item<double>()), 1e-5);
    EXPECT_LT(relative(rate, rates[step].item<double>()), 1e-12);
    engine.step(rate, clip_factor(norm, s["clip_grad_norm"]));
  }
  engine.export_weights([&](const TensorSpec& spec, const at::Tensor& value) {
    EXPECT_LT((value - golden.expected.read("final." + spec.name)).abs().max().item<double>(), 1e-4) << spec.name;
  });
}

class Golden : public ::testing::TestWithParam<std::tuple<const char*, int, int>> {};

TEST_P(Golden, TrainsAsTransformersDoes) {
  const auto [name, stage, ranks] = GetParam();
  const Case golden(name);
  const int micro_batches = ranks == 4 ? 3 : (stage + ranks) % 2 ? 2 : 1;
  SimWorld({.ranks = ranks}).run([&, stage = stage](Communicator& communicator, int rank) {
    const auto directory = std::make_shared<HfDirectory>(golden.folder + "/model");
    Model model = make_llama(directory->config());
    Chain chain;
    for (auto& unit : model.units) chain.push_back(unit.get());
    EngineOptions options;
    options.plan = ShardPlan::for_stage(stage);
    options.precision = {at::kFloat, at::kFloat, at::kFloat, at::kFloat};
    options.adamw = {golden.settings["lr"], golden.settings["betas"][0], golden.settings["betas"][1], golden.settings["eps"], golden.settings["weight_decay"]};
    Engine engine(chain, communicator, options);
    HfWeights weights(directory);
    weights.check(tensors_of(model));
    engine.load(weights);
    train_and_compare(golden, engine, rank, micro_batches);
  });
}

INSTANTIATE_TEST_SUITE_P(Cases, Golden,
                         ::testing::Combine(::testing::Values("tiny", "tiny-tied-bf16-sharded"), ::testing::Range(0, 4), ::testing::Range(1, 5)));

}  // namespace
}  // namespace zero::testing
