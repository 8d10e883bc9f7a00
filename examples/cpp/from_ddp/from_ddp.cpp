#include <torch/torch.h>
#include <zero/loader.h>
#include <zero/sharded.h>

using namespace torch;

int main() {
  auto world = zero::World::from_environment();
  manual_seed(1);
  auto x = randn({1000, 2});
  auto y = (x.select(1, 0) * x.select(1, 1) > 0).to(kLong);
  std::vector<data::Example<>> batches;  // of 40 rows: a loader is any range of batches
  for (int i = 0; i < 960; i += 40) batches.push_back({x.slice(0, i, i + 40), y.slice(0, i, i + 40)});
  auto loader = zero::shard(batches, world);

  nn::Sequential net(nn::Linear(2, 32), nn::Tanh(), nn::Linear(32, 32), nn::Tanh(), nn::Linear(32, 2));
  zero::Sharded<nn::Sequential> model(net, world, {.stage = 3});
  nn::CrossEntropyLoss criterion;
  auto optimizer = model.optimizer(zero::AdamWOptions{.lr = 1e-2, .weight_decay = 0});
  optimizer.clip(1.0);
  for (int epoch = 0; epoch < 5; ++epoch) {
    auto total = zeros({1});
    for (auto& batch : loader) {
      auto step = model.accumulate(2);
      auto loss = criterion(model->forward(batch.data), batch.target);
      model.backward(loss);
      total += loss.detach();
      optimizer.step();
    }
    total = world.mean(total);
    if (world.is_main()) std::printf("epoch %d: loss %.4f\n", epoch, total.item<double>() / batches.size());
  }
  NoGradGuard no_grad;
  std::vector<data::Example<>> tests{{x.slice(0, 960), y.slice(0, 960)}};
  for (auto& batch : zero::shard(tests, world)) {
    auto hits = world.gather_for_metrics(model->forward(batch.data).argmax(1) == batch.target);
    if (world.is_main()) std::printf("%ld of %ld right\n", long(hits.sum().item<int64_t>()), long(hits.size(0)));
  }
  model.save("model.safetensors");
}
