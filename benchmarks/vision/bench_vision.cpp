// Steps of the example's ResNet18 through zero::Sharded, timed: one JSON object on the main process's output.
//   bench_vision [--stage N] [--batch N] [--width N] [--steps N] [--norm sync|local]
// Pictures are random. --batch counts the pictures of all processes.
#include <torch/torch.h>

#include <chrono>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include <zero/loader.h>
#include <zero/sharded.h>
#include "examples/cpp/resnet18/net.h"
#include "examples/cpp/resnet18/norms.h"

int main(int argc, char** argv) {
  std::map<std::string, std::string> options{
      {"--stage", "3"}, {"--batch", "64"}, {"--width", "64"}, {"--steps", "8"}, {"--norm", "local"}};
  for (int i = 1; i + 1 < argc; i += 2) options.at(argv[i]) = argv[i + 1];
  const auto number = [&](const char* name) { return std::stoll(options.at(name)); };
  const auto world = zero::World::from_environment();

  torch::manual_seed(1);
  ResNet18 net(number("--width"), 10, batch_norm(world, options.at("--norm") == "local"));
  zero::Sharded<ResNet18> model(net, world, {.stage = int(number("--stage"))});
  auto optimizer = model.optimizer(zero::SgdOptions{.lr = 0.01, .momentum = 0.9});
  const torch::Tensor pictures = torch::randn({number("--batch"), 3, 32, 32}),
                      labels = torch::randint(10, {number("--batch")});
  const std::vector<torch::data::Example<>> batches(std::size_t(number("--steps")), {pictures, labels});

  std::string seconds, losses;
  auto loader = zero::shard(batches, world);
  auto batch = loader.begin();
  while (batch != loader.end()) {
    world.barrier();
    const auto begin = std::chrono::steady_clock::now();
    const torch::Tensor loss = torch::nn::functional::cross_entropy(model(batch->data), batch->target);
    model.backward(loss);
    optimizer.step();
    world.barrier();
    const double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    const double mean = world.mean(loss.detach()).item<double>();
    seconds += (seconds.empty() ? "" : ", ") + std::to_string(took);
    losses += (losses.empty() ? "" : ", ") + std::to_string(mean);
    ++batch;
  }
  if (world.is_main()) std::printf("{\"step_s\": [%s], \"losses\": [%s]}\n", seconds.c_str(), losses.c_str());
}
