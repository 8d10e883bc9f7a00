// Trains the network of cifar10-airbench (Jordan 2024, arXiv 2404.00498), which reaches 94 % of CIFAR-10 there:
//   mpirun -np 2 airbench cifar-10-batches-bin [--epochs 9.9] [--batch 1024] [--stage 3] [--precision fp32]
// It shows a frozen layer, rates by group, and weights averaged by load(). Where the pictures are: resnet18.cpp.
#include <torch/torch.h>

#include <cmath>
#include <cstdio>
#include <map>
#include <string>

#include <zero/loader.h>
#include <zero/metrics.h>
#include <zero/sharded.h>
#include "net.h"
#include "vision/accuracy.h"
#include "vision/cifar10.h"

namespace {

using vision::Cifar10;
using Model = zero::Sharded<Airbench>;

constexpr double momentum = 0.85, bias_scale = 64;
constexpr double rate_of_1024 = 11.5 / (1 + 1 / (1 - momentum));  // of the mean loss over 1,024 pictures
constexpr double decay = 0.0153 / 11.5;

std::map<std::string, std::string> options_of(int argc, char** argv) {
  std::map<std::string, std::string> options{
      {"--epochs", "9.9"}, {"--batch", "1024"}, {"--stage", "3"}, {"--precision", "fp32"}};
  const auto require = [](bool holds) {
    if (!holds)
      throw std::invalid_argument("usage: airbench DIR [--epochs X] [--batch N] [--stage N] [--precision fp32|bf16]");
  };
  require(argc % 2 == 0);
  for (int i = 2; i < argc; i += 2) {
    require(options.contains(argv[i]));
    options[argv[i]] = argv[i + 1];
  }
  require(options["--precision"] == "fp32" || options["--precision"] == "bf16");
  return options;
}

/// A share of the peak: from a fifth up to it, then down to 7 %, both in a line.
double share_of_rate(std::int64_t step, std::int64_t steps) {
  const double done = double(step) / double(steps), peak = 0.23;
  return done < peak ? 0.2 + 0.8 * done / peak : 1 - 0.93 * (done - peak) / (1 - peak);
}

/// Lookahead (Zhang et al. 2019): a slow average of the weights and running statistics, which then replaces them.
class SlowWeights {
 public:
  explicit SlowWeights(Model& model) {
    for_each(model, [&](const std::string& name, const torch::Tensor& value) { weights_[name] = value.clone(); });
  }
  /// `keep`: how much of the average stays.
  void update(Model& model, double keep) {
    for_each(model,
             [&](const std::string& name, const torch::Tensor& value) { weights_[name].lerp_(value, 1 - keep); });
    model.load(weights_, /*strict=*/false);
  }

 private:
  static void for_each(Model& model, const zero::ShardedModel::Visit& visit) {
    model.for_each_parameter(visit);
    for (const auto& buffer : model->named_buffers())
      if (buffer->is_floating_point()) visit(buffer.key(), buffer->detach().cpu());
  }
  zero::NamedTensors weights_;
};

/// Logits of six views: the picture, and the picture moved by one pixel both ways; each also turned left to right.
torch::Tensor logits_of_views(Model& model, const torch::Tensor& x) {
  const auto both = [&](const torch::Tensor& view) { return (model(view) + model(view.flip(3))) / 2; };
  const torch::Tensor wide = torch::reflection_pad2d(x, {1, 1, 1, 1});
  const auto moved = [&](std::int64_t by) { return both(wide.narrow(2, by, x.size(2)).narrow(3, by, x.size(3))); };
  return both(x) / 2 + (moved(0) + moved(2)) / 4;
}

torch::Tensor first_pictures(Cifar10& pictures) {
  std::vector<torch::Tensor> first;
  for (std::size_t i = 0; i < std::min<std::size_t>(5000, *pictures.size()); ++i) first.push_back(pictures.get(i).data);
  return torch::stack(first);
}

void train(const std::string& folder, std::map<std::string, std::string>& options, const zero::World& world) {
  Cifar10 plain(vision::training_files(folder)), unseen(folder, Cifar10::Part::test);
  Cifar10 pictures(vision::training_files(folder),
                   {.augmentation = vision::CropAndFlip{.padding = 2, .alternating = true}});
  const std::int64_t batch_size = std::stoll(options["--batch"]);
  auto batches = zero::make_data_loader(pictures.map(torch::data::transforms::Stack<>()), world,
                                        {.batch_size = batch_size, .shuffle = true, .drop_last = true, .workers = 1});
  const double epochs = std::stod(options["--epochs"]), rate = rate_of_1024 * double(batch_size) / 1024;
  if (batches.size() == 0 || !(epochs > 0 && epochs < 1e6))
    throw std::invalid_argument("--epochs " + options["--epochs"] + " of batches of " + options["--batch"] +
                                " are no step: " + folder + " has " + std::to_string(*pictures.size()) + " pictures");
  const auto steps = std::int64_t(std::ceil(double(batches.size()) * epochs));
  if (world.is_main()) std::printf("%zu pictures, %lld steps\n", *pictures.size(), (long long)steps);

  torch::manual_seed(1);  // the same start on every process
  Airbench net(whitening_filters(first_pictures(plain)), world);
  net->to(world.device());
  Model model(net, world,
              {.stage = std::stoi(options["--stage"]),
               .precision = options["--precision"] == "bf16" ? zero::bf16 : zero::fp32});
  auto optimizer = model.optimizer(zero::SgdOptions{
      .lr = rate,
      .momentum = momentum,
      .nesterov = true,
      .weight_decay = decay,
      .groups = {{.match = {"*norm?.bias"}, .lr = rate * bias_scale, .weight_decay = decay / bias_scale},
                 {.match = {"whiten.bias"}, .weight_decay = decay}}});
  SlowWeights slow(model);

  std::int64_t step = 0;
  for (std::int64_t epoch = 0; step < steps; ++epoch) {
    batches.set_epoch(epoch);
    zero::MeanMetric mean_loss(world);
    for (auto& batch : batches) {
      if (step == steps) break;
      const torch::Tensor loss = torch::nn::functional::cross_entropy(
          model(batch.data), batch.target, torch::nn::functional::CrossEntropyFuncOptions().label_smoothing(0.2));
      const auto rows = double(batch.target.size(0));
      model.backward(loss, rows);
      optimizer.step(rate * share_of_rate(step++, steps));
      if (step % 5 == 0) slow.update(model, std::pow(0.95, 5) * std::pow(double(step) / double(steps), 3));
      mean_loss.update(loss, rows);
    }
    model->eval();
    const double loss = mean_loss.compute();
    const double found = vision::accuracy(unseen, world, batch_size, [&](const torch::Tensor& x) { return model(x); });
    model->train();
    if (world.is_main())
      std::printf("epoch %2lld  loss %.4f  accuracy %.2f %%\n", (long long)epoch + 1, loss, 100 * found);
    std::fflush(stdout);
  }
  slow.update(model, 1);
  model->eval();
  const double found =
      vision::accuracy(unseen, world, batch_size, [&](const torch::Tensor& x) { return logits_of_views(model, x); });
  if (world.is_main()) std::printf("slow weights, six views: %.2f %%\n", 100 * found);
}

}  // namespace

int main(int argc, char** argv) {
  return zero::World::run([&](zero::World& world) {
    auto options = options_of(argc, argv);
    train(argv[1], options, world);
    return 0;
  });
}
