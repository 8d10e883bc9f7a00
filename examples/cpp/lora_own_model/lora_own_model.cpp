// LoRA (Hu et al. 2021) on a model of one's own. Its weights are frozen, and two narrow matrices next to each linear
// layer are trained. First the net learns the digits 0 to 4, then adapters alone teach it 5 to 9:
//   mpirun -np 2 build/release/bin/lora_own_model [DIRECTORY of digits]
#include <torch/torch.h>

#include <cstdio>
#include <string>

#include <zero/loader.h>
#include <zero/safetensors.h>
#include <zero/sharded.h>
#include "vision/cifar10.h"

namespace {

using vision::Cifar10;

/// A linear layer; with rank > 0 it is frozen, and has adapters: y = W x + b + B A x.
struct AdaptedLinearImpl : torch::nn::Module {
  AdaptedLinearImpl(std::int64_t in, std::int64_t out, std::int64_t rank)
      : base(register_module("base", torch::nn::Linear(in, out))) {
    if (rank == 0) return;
    for (auto& parameter : base->parameters()) parameter.requires_grad_(false);
    a = register_parameter("lora_a", torch::randn({rank, in}) / std::sqrt(double(in)));
    b = register_parameter("lora_b", torch::zeros({out, rank}));  // at first the adapted net is the net
  }
  torch::Tensor forward(const torch::Tensor& x) {
    const auto y = base(x);
    return a.defined() ? y + torch::linear(torch::linear(x, a), b) : y;
  }
  torch::nn::Linear base;
  torch::Tensor a, b;
};
TORCH_MODULE(AdaptedLinear);

struct NetImpl : torch::nn::Module {
  explicit NetImpl(std::int64_t rank)
      : first(register_module("first", AdaptedLinear(3 * 32 * 32, 128, rank))),
        second(register_module("second", AdaptedLinear(128, 128, rank))),
        third(register_module("third", AdaptedLinear(128, 10, rank))) {}
  torch::Tensor forward(const torch::Tensor& x) { return third(torch::relu(second(torch::relu(first(x.flatten(1)))))); }
  AdaptedLinear first, second, third;
};
TORCH_MODULE(Net);

/// The digits from `low` to `high`, as tensors.
struct Digits : torch::data::datasets::Dataset<Digits> {
  Digits(Cifar10 all, std::int64_t low, std::int64_t high)
      : all(std::move(all)), chosen(((this->all.labels() >= low) & (this->all.labels() <= high)).nonzero().flatten()) {}
  torch::data::Example<> get(std::size_t index) override {
    return all.get(std::size_t(chosen[std::int64_t(index)].item<std::int64_t>()));
  }
  std::optional<std::size_t> size() const override { return std::size_t(chosen.size(0)); }
  Cifar10 all;
  torch::Tensor chosen;
};

void train(zero::Sharded<Net>& model, Digits digits, double lr, int epochs, const char* what) {
  const zero::World& world = model.world();
  auto optimizer = model.optimizer(zero::AdamWOptions{.lr = lr, .weight_decay = 0});
  optimizer.clip(1.0);
  auto batches = zero::make_data_loader(digits.map(torch::data::transforms::Stack<>()), world,
                                        {.batch_size = 30, .shuffle = true});
  for (int epoch = 0; epoch < epochs; ++epoch) {
    batches.set_epoch(epoch);
    std::int64_t right = 0;
    for (auto& batch : batches) {
      const auto scores = model->forward(batch.data);
      model.backward(torch::nn::functional::cross_entropy(scores, batch.target), double(batch.target.size(0)));
      optimizer.step();
      right += world.gather_for_metrics(scores.argmax(1) == batch.target).sum().item<std::int64_t>();
    }
    if (world.is_main())
      std::printf("%s, epoch %d: %lld of %zu right\n", what, epoch + 1, (long long)right, *digits.size());
  }
}

/// How many numbers of a net are trained.
std::int64_t trained_numbers(const Net& net) {
  std::int64_t count = 0;
  for (const auto& parameter : net->parameters()) count += parameter.requires_grad() ? parameter.numel() : 0;
  return count;
}

void adapt(const zero::World& world, const std::string& directory) {
  const Cifar10 all({directory + "/data_batch_1.bin"});
  torch::manual_seed(1);

  zero::NamedTensors learned;
  {
    Net start(0);
    start->to(world.device());
    zero::Sharded<Net> model(start, world, {.stage = 3});
    train(model, Digits(all, 0, 4), 1e-3, 4, "whole net, digits 0 to 4");
    model.for_each_parameter(
        [&](const std::string& name, const torch::Tensor& value) { learned[name] = value.clone(); });
  }

  Net net(4);
  net->to(world.device());
  {
    const torch::NoGradGuard no_grad;  // the frozen part is what was learned
    for (auto& parameter : net->named_parameters())
      if (learned.contains(parameter.key())) parameter.value().copy_(learned.at(parameter.key()));
  }
  const std::int64_t trained = trained_numbers(net);
  zero::Sharded<Net> model(net, world, {.stage = 3});
  if (world.is_main()) std::printf("adapters: %lld numbers\n", (long long)trained);
  train(model, Digits(all, 5, 9), 1e-2, 8, "adapters, digits 5 to 9");

  zero::NamedTensors adapters;
  double moved = 0;
  model.for_each_parameter([&](const std::string& name, const torch::Tensor& value) {
    if (learned.contains(name))
      moved += (value - learned.at(name)).abs().sum().item<double>();
    else
      adapters[name] = value.clone();
  });
  if (world.is_main()) {
    std::printf("the frozen weights moved by %g\n", moved);
    zero::write_safetensors("adapters.safetensors", adapters);
  }
}

}  // namespace

int main(int argc, char** argv) {
  return zero::World::run([&](zero::World& world) {
    adapt(world, argc > 1 ? argv[1] : "examples/data/digits");
    return 0;
  });
}
