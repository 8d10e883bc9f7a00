// A GAN (Goodfellow et al. 2014): two models, an optimizer of each, and one checkpoint of both. A program that was
// stopped in the middle of an epoch continues from it as if it had not been stopped:
//   mpirun -np 2 build/release/bin/gan [DIRECTORY of digits [BATCHES]]     BATCHES: saves and ends after so many
#include <cstdio>
#include <cstdlib>
#include <string>

#include <zero/checkpoint.h>
#include <zero/loader.h>
#include <zero/nn/convert_sync_batchnorm.h>
#include <zero/sharded.h>

#include "nets.h"
#include "vision/cifar10.h"

namespace {

torch::Tensor loss_of(const torch::Tensor& logits, double target) {
  return torch::nn::functional::binary_cross_entropy_with_logits(logits, torch::full_like(logits, target));
}

template <typename Net>
Net on_device(Net net, const zero::World& world) {
  initialise(*net);
  net->to(world.device());
  zero::nn::convert_sync_batchnorm(*net, world);  // statistics of the whole batch, as on one process
  return net;
}

void train(const zero::World& world, const std::string& directory, std::int64_t most) {
  const vision::Cifar10 digits({directory + "/data_batch_1.bin"},
                               {.mean = {0.5, 0.5, 0.5}, .std = {0.5, 0.5, 0.5}});  // from -1 to 1
  torch::manual_seed(1);
  zero::Sharded<Generator> generator(on_device(Generator(), world), world, {.stage = 3});
  zero::Sharded<Critic> critic(on_device(Critic(), world), world, {.stage = 3});
  const zero::AdamWOptions settings{.lr = 1e-3, .beta1 = 0.5, .beta2 = 0.95, .weight_decay = 0};
  auto generator_adam = generator.optimizer(settings), critic_adam = critic.optimizer(settings);
  auto batches = zero::make_data_loader(vision::Cifar10(digits).map(torch::data::transforms::Stack<>()), world,
                                        {.batch_size = 30, .shuffle = true});

  std::int64_t done = 0;
  auto losses = torch::zeros({2});  // the critic's and the generator's, over the epoch's pictures so far
  zero::Checkpoint checkpoint("gan-states", world);
  checkpoint.add("generator", generator).add("critic", critic);
  checkpoint.add("batches", batches).add("done", done).add("losses", losses);
  if (checkpoint.exists()) checkpoint.load();

  for (auto epoch = batches.epoch(); epoch < 3; ++epoch) {
    batches.set_epoch(epoch);
    for (auto& batch : batches) {
      const auto rows = batch.data.size(0);
      // All processes draw the noise of the whole batch, and each takes its rows.
      const auto noise =
          zero::take_rows(torch::randn({batches.global_rows(), noise_width}), batches.rows(), world.device());
      const auto fakes = generator->forward(noise);

      const auto judged = loss_of(critic->forward(batch.data), 0.9) + loss_of(critic->forward(fakes.detach()), 0);
      critic.backward(judged, double(rows));
      critic_adam.step();

      const auto drawn = [&] {
        const auto frozen = critic.freeze();  // the generator's gradients pass through the critic
        auto loss = loss_of(critic->forward(fakes), 1);
        generator.backward(loss, double(rows));
        return loss;
      }();
      generator_adam.step();

      const auto sums = torch::stack({judged, drawn}).detach() * rows;
      losses += world.sum(rows > 0 ? sums : torch::zeros_like(sums)).cpu();  // the mean of no rows is NaN
      if (++done == most) return checkpoint.save();
    }
    losses /= double(*digits.size());
    if (world.is_main())
      std::printf("epoch %lld: critic %.4f, generator %.4f\n", (long long)epoch + 1, losses[0].item<double>(),
                  losses[1].item<double>());
    losses.zero_();
    checkpoint.save();
  }
  generator.save("generator.safetensors");
}

}  // namespace

int main(int argc, char** argv) {
  return zero::World::run([&](zero::World& world) {
    train(world, argc > 1 ? argv[1] : "examples/data/digits", argc > 2 ? std::atoll(argv[2]) : 0);
    return 0;
  });
}
