// ResNet18 on CIFAR-10 over several processes.
//
// The pictures (163 MB), the binary version:
//   curl -O https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz && tar xzf cifar-10-binary.tar.gz
//   mpirun -np 2 resnet18 cifar-10-batches-bin --epochs 30
// Without the download, 300 handwritten digits in the same format, too few for it to learn more than to guess: the loss
// falls from epoch to epoch, the accuracy stays near 10 %. This prints what is like expected.txt (rounding decides the
// rest):
//   mpirun -np 2 resnet18 examples/data/digits --width 8 --epochs 3 --batch 20
//
// resnet18 DIR [--epochs N] [--batch N] [--width N] [--lr X] [--stage N] [--local-statistics] [--save
// MODEL.safetensors] resnet18 CASE_DIR [--stage N] [--local-statistics] --dump OUT.safetensors     a reference case
// (case.json)
#include <torch/torch.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>
#include <string>

#include <zero/loader.h>
#include <zero/metrics.h>
#include <zero/sharded.h>
#include "case.h"
#include "net.h"
#include "norms.h"
#include "vision/accuracy.h"
#include "vision/cifar10.h"

namespace {

using vision::Cifar10;
using vision::Cifar10Options;

struct Options {
  std::string directory;
  std::map<std::string, std::string> values;
  bool local_statistics = false;

  Options(int argc, char** argv) {
    for (int i = 1; i < argc; ++i) {
      const std::string word = argv[i];
      if (word == "--local-statistics")
        local_statistics = true;
      else if (word.rfind("--", 0) != 0)
        directory = word;
      else if (!defaults().contains(word) || i + 1 == argc)
        throw std::invalid_argument("unknown option, or one without its value: " + word);
      else
        values[word] = argv[++i];
    }
    if (directory.empty())
      throw std::invalid_argument("which directory? resnet18 DIR [--epochs N] ...: the first lines of resnet18.cpp");
  }
  std::string text(const std::string& name) const {
    return values.contains(name) ? values.at(name) : defaults().at(name);
  }
  double number(const std::string& name) const { return std::stod(text(name)); }

 private:
  static const std::map<std::string, std::string>& defaults() {
    static const std::map<std::string, std::string> all{{"--epochs", "30"}, {"--batch", "128"}, {"--width", "64"},
                                                        {"--lr", "0.1"},    {"--stage", "3"},   {"--save", ""},
                                                        {"--dump", ""}};
    return all;
  }
};

/// Down a cosine, after a fifth of the run up a line.
double learning_rate(double peak, std::int64_t step, std::int64_t steps) {
  const double warmup = double(steps) / 5;
  if (double(step) < warmup) return peak * double(step + 1) / warmup;
  return peak * 0.5 * (1 + std::cos(M_PI * (double(step) - warmup) / (double(steps) - warmup)));
}

void train(const Options& options, const zero::World& world) {
  Cifar10 pictures(vision::training_files(options.directory), Cifar10Options{.augmentation = vision::CropAndFlip{}});
  Cifar10 unseen(options.directory, Cifar10::Part::test);
  const auto batch_size = std::int64_t(options.number("--batch")), epochs = std::int64_t(options.number("--epochs"));
  auto batches = zero::make_data_loader(pictures.map(torch::data::transforms::Stack<>()), world,
                                        {.batch_size = batch_size, .shuffle = true, .workers = 1});

  torch::manual_seed(1);  // the same start on every process
  ResNet18 net(std::int64_t(options.number("--width")), 10, batch_norm(world, options.local_statistics));
  net->to(world.device());
  zero::Sharded<ResNet18> model(net, world, {.stage = int(options.number("--stage"))});
  auto optimizer = model.optimizer(zero::SgdOptions{.momentum = 0.9, .nesterov = true, .weight_decay = 5e-4});

  std::int64_t step = 0;
  for (std::int64_t epoch = 0; epoch < epochs; ++epoch) {
    batches.set_epoch(epoch);
    zero::MeanMetric mean_loss(world);
    for (auto& batch : batches) {
      const torch::Tensor loss = torch::nn::functional::cross_entropy(model(batch.data), batch.target);
      const auto rows = double(batch.target.size(0));
      model.backward(loss, rows);
      optimizer.step(learning_rate(options.number("--lr"), step++, epochs * batches.size()));
      mean_loss.update(loss, rows);
    }
    const double loss = mean_loss.compute();
    model->eval();
    const double found = vision::accuracy(unseen, world, batch_size, [&](const torch::Tensor& x) { return model(x); });
    model->train();
    if (world.is_main())
      std::printf("epoch %2lld  loss %.4f  accuracy %.1f %%\n", (long long)epoch + 1, loss, 100 * found);
  }
  if (!options.text("--save").empty()) model.save(options.text("--save"));
}

}  // namespace

int main(int argc, char** argv) {
  return zero::World::run([&](zero::World& world) {
    const Options options(argc, argv);
    if (std::filesystem::exists(options.directory + "/case.json"))
      run_case(options.directory, {options.text("--dump"), int(options.number("--stage")), options.local_statistics},
               world);
    else
      train(options, world);
    return 0;
  });
}
