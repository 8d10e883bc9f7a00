// A small diffusion transformer with AdaLN-Zero that learns to draw handwritten digits (flow matching; Lipman et al.
// 2023):
//   mpirun -np 2 build/release/bin/dit [DIRECTORY of digits] [EPOCHS]
// It prints the loss of every epoch (expected.txt: of 3), and writes digits that it drew as dit.ppm.
#include <torch/torch.h>

#include <cstdio>
#include <fstream>
#include <string>

#include <zero/loader.h>
#include <zero/sharded.h>
#include "net.h"
#include "vision/cifar10.h"

namespace {

/// Noise and time of each picture of an epoch, drawn in the order of the data on every process alike. A process takes
/// its own rows, so that results do not depend on the number of processes.
struct Noise {
  torch::Tensor pictures, times;
  Noise(std::int64_t rows, std::int64_t side, torch::Device device)
      : pictures(torch::randn({rows, 3, side, side}).to(device)), times(torch::rand({rows}).to(device)) {}
};

/// From noise along the flow, in `steps` steps of Euler: [classes, 3, side, side].
torch::Tensor draw(zero::Sharded<DiT>& model, std::int64_t classes, std::int64_t side, int steps) {
  const torch::NoGradGuard no_grad;
  torch::manual_seed(3);
  const torch::Device device = model.world().device();
  torch::Tensor x = torch::randn({classes, 3, side, side}).to(device);
  const torch::Tensor labels = torch::arange(classes, device);
  for (int s = 0; s < steps; ++s)
    x = x + model->forward(x, torch::full({classes}, double(s) / steps, device), labels) / steps;
  return x;
}

/// Pictures [n, 3, side, side] of -1 to 1, side by side, as a portable pixmap.
void write_pixmap(const std::string& path, const torch::Tensor& pictures) {
  const torch::Tensor strip =
      ((pictures.cpu().clamp(-1, 1) + 1) * 127.5).to(torch::kByte).permute({2, 0, 3, 1}).contiguous();
  std::ofstream file(path, std::ios::binary);
  file << "P6 " << pictures.size(0) * pictures.size(3) << ' ' << pictures.size(2) << " 255\n";
  file.write(static_cast<const char*>(strip.data_ptr()), strip.numel());
}

void learn_to_draw(const zero::World& world, const std::string& directory, int epochs) {
  vision::Cifar10 digits({directory + "/data_batch_1.bin"}, {.mean = {0.5, 0.5, 0.5}, .std = {0.5, 0.5, 0.5}});
  const DiTOptions shape;

  torch::manual_seed(1);
  DiT net(shape);
  net->to(world.device());
  zero::Sharded<DiT> model(net, world, {.stage = 3});
  auto optimizer = model.optimizer(zero::AdamWOptions{.lr = 2e-3, .weight_decay = 0});
  optimizer.clip(1.0);
  auto batches = zero::make_data_loader(digits.map(torch::data::transforms::Stack<>()), world,
                                        {.batch_size = 50, .shuffle = true});
  for (int epoch = 0; epoch < epochs; ++epoch) {
    batches.set_epoch(epoch);
    torch::manual_seed(100 + epoch);
    double sum = 0;
    for (auto& batch : batches) {
      const zero::RowRange mine = batches.rows();
      const Noise all(batches.global_rows(), shape.picture, world.device());
      const auto noise = all.pictures.narrow(0, mine.begin, mine.count),
                 times = all.times.narrow(0, mine.begin, mine.count);
      const auto where = times.view({-1, 1, 1, 1});
      const auto flow = model->forward((1 - where) * noise + where * batch.data, times, batch.target);
      const auto loss = (flow - (batch.data - noise)).square().flatten(1).mean(1).sum();  // sum over this process's
                                                                                          // rows
      model.backward(loss / double(std::max<std::int64_t>(mine.count, 1)), double(mine.count));
      optimizer.step();
      sum += world.sum(loss.detach()).item<double>();
    }
    if (world.is_main()) std::printf("epoch %2d  loss %.4f\n", epoch + 1, sum / double(*digits.size()));
  }
  const torch::Tensor drawn = draw(model, shape.classes, shape.picture, 20);
  if (world.is_main()) write_pixmap("dit.ppm", drawn);
}

}  // namespace

int main(int argc, char** argv) {
  return zero::World::run([&](zero::World& world) {
    learn_to_draw(world, argc > 1 ? argv[1] : "examples/data/digits", argc > 2 ? std::stoi(argv[2]) : 10);
    return 0;
  });
}
