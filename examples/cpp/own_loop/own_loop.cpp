// A training loop of one's own over the processes that mpirun starts (or without it, one):
//   mpirun -np 2 build/release/bin/own_loop
#include <torch/torch.h>
#include <zero/loader.h>
#include <zero/sharded.h>
#include "vision/cifar10.h"

using namespace torch;

int main(int argc, char** argv) {
  const auto world = zero::World::from_environment();
  const std::string folder = argc > 1 ? argv[1] : "examples/data/digits";
  vision::Cifar10 digits({folder + "/data_batch_1.bin"});
  auto batches =
      zero::make_data_loader(digits.map(data::transforms::Stack<>()), world, {.batch_size = 32, .shuffle = true});

  manual_seed(1);
  nn::Sequential net(nn::Flatten(), nn::Linear(3 * 32 * 32, 128), nn::ReLU(), nn::Linear(128, 10));
  net->to(world.device());
  zero::Sharded<nn::Sequential> model(net, world, {.stage = 3});
  auto optimizer = model.optimizer(zero::AdamWOptions{.lr = 2e-3});
  for (int epoch = 0; epoch < 5; ++epoch) {
    batches.set_epoch(epoch);
    std::int64_t right = 0;
    for (auto& batch : batches) {
      const auto scores = model->forward(batch.data);
      model.backward(nn::functional::cross_entropy(scores, batch.target), double(batch.target.size(0)));
      optimizer.step();
      right += world.gather_for_metrics(scores.argmax(1) == batch.target).sum().item<std::int64_t>();
    }
    if (world.is_main()) std::printf("epoch %d: %ld of %zu digits right\n", epoch + 1, long(right), *digits.size());
  }
  model.save("own_loop.safetensors");
}
