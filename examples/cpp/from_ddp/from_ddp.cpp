#include <torch/torch.h>
#include <zero/loader.h>
#include <zero/metrics.h>
#include <zero/sharded.h>

namespace nn = torch::nn;
using Batch = torch::data::Example<>;

int main() {
  auto world = zero::World::from_environment();
  torch::manual_seed(1);
  auto x = torch::randn({1000, 2});
  auto y = (x.select(1, 0) * x.select(1, 1) > 0).to(torch::kLong);
  std::vector<Batch> batches, tests{Batch(x.slice(0, 960), y.slice(0, 960))};
  for (int i = 0; i < 960; i += 40)  // a loader is any range of batches
    batches.push_back(Batch(x.slice(0, i, i + 40), y.slice(0, i, i + 40)));
  auto loader = zero::shard(batches, world);

  nn::Sequential net{nn::Linear(2, 32), nn::Tanh(), nn::Linear(32, 32), nn::Tanh(), nn::Linear(32, 2)};  // {}: in order
  zero::Sharded<nn::Sequential> model(net, world, {.stage = 3});
  nn::CrossEntropyLoss criterion;
  auto optimizer = model.optimizer(zero::AdamWOptions{.lr = 1e-2, .weight_decay = 0});
  optimizer.clip(1.0);
  for (int epoch = 0; epoch < 5; ++epoch) {
    zero::MeanMetric mean_loss(world);
    for (auto& batch : loader) {
      auto step = model.accumulate(2);
      auto loss = criterion(model->forward(batch.data), batch.target);
      model.backward(loss, batch.data.size(0));
      mean_loss.update(loss, batch.data.size(0));
      optimizer.step();
    }
    const double total = mean_loss.compute();
    if (world.is_main()) std::printf("epoch %d: loss %.4f\n", epoch, total);
  }
  torch::NoGradGuard no_grad;
  for (auto& batch : zero::shard(tests, world)) {
    auto hits = world.gather_for_metrics(model->forward(batch.data).argmax(1) == batch.target);
    if (world.is_main()) std::printf("%ld of %ld right\n", hits.sum().item<long>(), long(hits.size(0)));
  }
  model.save("model.safetensors");
}
