#include "tests/sim/golden_case.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "models/decoder/decoder.h"
#include "models/model.h"
#include "zero/core/gradient_accumulation.h"
#include "zero/optim/schedule.h"

namespace zero::testing {
namespace {

double relative(double value, double expected) {
  return std::abs(value - expected) / std::max(std::abs(expected), 1e-12);
}

// PEFT puts the adapter's name into tensor names in memory, but not in its files. A module trained whole is nested in
// another.
std::string name_in_memory(const std::string& name, const nlohmann::json& settings) {
  for (const std::string part : {".lora_A", ".lora_B"})
    if (const auto at = name.find(part + ".weight"); at != std::string::npos)
      return name.substr(0, at) + part + ".default.weight";
  if (!settings.contains("lora")) return name;
  const auto last = name.rfind('.');
  return "base_model.model." + name.substr(0, last) + ".modules_to_save.default" + name.substr(last);
}

}  // namespace

GoldenCase::GoldenCase(const std::string& name)
    : folder(std::string(ZERO_TEST_DATA) + "/" + name), expected(folder + "/expect.safetensors") {
  settings = nlohmann::json::parse(std::ifstream(folder + "/case.json"));
  std::ifstream file(folder + "/tokens.bin", std::ios::binary);
  for (std::uint16_t token; file.read(reinterpret_cast<char*>(&token), 2);) tokens.push_back(token);
}

Batch GoldenCase::batch(std::int64_t first_window, std::int64_t rows) const {
  const std::int64_t seq = settings["seq"];
  Batch batch{at::empty({rows, seq}, at::kLong), at::empty({rows, seq}, at::kLong), {}, {}};
  for (std::int64_t b = 0; b < rows; ++b)
    for (std::int64_t t = 0; t < seq; ++t) {
      batch.ids.data_ptr<std::int64_t>()[b * seq + t] = tokens[(first_window + b) * seq + t];
      batch.targets.data_ptr<std::int64_t>()[b * seq + t] = tokens[(first_window + b) * seq + t + 1];
    }
  return batch;
}

EngineOptions GoldenCase::engine_options(int stage) const {
  EngineOptions options;
  options.plan = ShardPlan::for_stage(stage);
  options.precision = {at::kFloat, at::kFloat, at::kFloat, at::kFloat};
  options.optimizer = {{.lr = settings["lr"],
                        .weight_decay = settings["weight_decay"],
                        .beta1 = settings["betas"][0],
                        .beta2 = settings["betas"][1],
                        .eps = settings["eps"]}};
  return options;
}

void train_and_compare(const GoldenCase& golden, Engine& engine, int rank, int micro_batches) {
  const auto& s = golden.settings;
  Communicator& communicator = engine.mesh().ranks();
  const std::int64_t global = s["batch"], steps = s["steps"], rows = global / (communicator.size() * micro_batches);
  const double tokens = golden.tokens_per_step();
  const ScheduleOptions schedule{ScheduleType::cosine, s["lr"], steps, s["warmup_steps"], s["min_lr_ratio"]};
  const at::Tensor losses = golden.expected.read("step.loss"), norms = golden.expected.read("step.grad_norm"),
                   rates = golden.expected.read("step.lr");
  const at::Tensor logits = golden.expected.read("logits");
  for (std::int64_t step = 0; step < steps; ++step) {
    const at::Tensor loss_sum =
        accumulate_gradients(engine, micro_batches, 1.0 / tokens, [&](std::int64_t a, Batch& batch) {
          const std::int64_t in_step = (a * communicator.size() + rank) * rows;
          batch = golden.batch(step * global + in_step, rows);
          ForwardContext context;
          context.batch = &batch;
          if (step == 0) {
            const at::Tensor got = engine.evaluate(context, logits_of);
            EXPECT_LT((got - logits.narrow(0, in_step, rows)).abs().max().item<double>(), 3e-5);
          }
          return context;
        });
    if (step == 0) {
      engine.export_gradients([&](const TensorSpec& spec, const at::Tensor& value) {
        const at::Tensor want = golden.expected.read("grad." + name_in_memory(spec.name, s));
        EXPECT_LT((value - want).abs().max().item<double>(), 3e-5 * want.abs().max().item<double>()) << spec.name;
      });
    }
    const double rate = learning_rate(schedule, step);
    const StepResult result = engine.update({.lr = rate, .max_norm = s["clip_grad_norm"]}, loss_sum).wait();
    const at::Tensor total = at::full({1}, result.loss_sum(), at::kDouble);
    communicator.all_reduce(total, {at::kDouble, false});
    EXPECT_LT(relative(total.item<double>() / tokens, losses[step].item<double>()), 1e-5);
    EXPECT_LT(relative(result.norm, norms[step].item<double>()), 1e-5);
    EXPECT_LT(relative(rate, rates[step].item<double>()), 1e-12);
  }
  engine.export_weights(
      [&](const TensorSpec& spec, const at::Tensor& value) {
        EXPECT_LT((value - golden.expected.read("final." + name_in_memory(spec.name, s))).abs().max().item<double>(),
                  1e-4)
            << spec.name;
      },
      /*trainable_only=*/true);
}

}  // namespace zero::testing
