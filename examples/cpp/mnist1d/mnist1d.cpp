// Trains the convolutional network of MNIST-1D (Greydanus 2020, arXiv 2011.14439), which reaches 94 % there:
//   mpirun -np 2 build/release/bin/mnist1d FOLDER
// benchmarks/reference_mnist1d writes FOLDER/train.bin and FOLDER/test.bin: records of 40 numbers and a label, fp32.
#include <torch/torch.h>
#include <zero/loader.h>
#include <zero/sharded.h>

#include <filesystem>

using namespace torch;

namespace {

constexpr std::int64_t points = 40, record = points + 1, classes = 10;

struct Signals : data::datasets::Dataset<Signals> {
  explicit Signals(const std::string& path) {
    const auto numbers = std::int64_t(std::filesystem::file_size(path) / sizeof(float));
    records = torch::from_file(path, /*shared=*/false, numbers, kFloat).view({-1, record});
  }
  data::Example<> get(std::size_t index) override {
    const Tensor row = records[std::int64_t(index)];
    return {row.narrow(0, 0, points).unsqueeze(0), row[points].to(kLong)};
  }
  optional<std::size_t> size() const override { return std::size_t(records.size(0)); }

  Tensor records;  // [records, 41]
};

nn::Sequential make_net() {
  const auto layer = [](std::int64_t from, std::int64_t to, std::int64_t width) {
    return nn::Conv1d(nn::Conv1dOptions(from, to, width).stride(2).padding(1));
  };
  return nn::Sequential(layer(1, 25, 5), nn::ReLU(), layer(25, 25, 3), nn::ReLU(), layer(25, 25, 3), nn::ReLU(),
                        nn::Flatten(), nn::Linear(25 * 5, classes));
}

}  // namespace

int main(int argc, char** argv) {
  const auto world = zero::World::from_environment();
  const std::string folder = argc > 1 ? argv[1] : ".";
  auto of_file = [&](const char* name) { return Signals(folder + name).map(data::transforms::Stack<>()); };
  auto training = zero::make_data_loader(of_file("/train.bin"), world, {.batch_size = 100, .shuffle = true});
  auto test = zero::make_data_loader(of_file("/test.bin"), world, {.batch_size = 100});

  manual_seed(1);
  nn::Sequential net = make_net();
  zero::Sharded<nn::Sequential> model(net, world, {.stage = 3});
  auto optimizer = model.optimizer(zero::AdamWOptions{.lr = 1e-2, .weight_decay = 0});
  for (int epoch = 1; epoch <= 150; ++epoch) {
    training.set_epoch(epoch);
    for (auto& batch : training) {
      model.backward(nn::functional::cross_entropy(model->forward(batch.data), batch.target),
                     double(batch.target.size(0)));
      optimizer.step();
    }
    if (epoch % 30 != 0) continue;
    NoGradGuard no_grad;
    std::int64_t right = 0, seen = 0;
    for (auto& batch : test) {
      const Tensor hits = world.gather_for_metrics(model->forward(batch.data).argmax(1) == batch.target);
      right += hits.sum().item<std::int64_t>();
      seen += hits.size(0);
    }
    if (world.is_main())
      std::printf("epoch %d: %.1f %% of %ld right\n", epoch, 100.0 * double(right) / double(seen), long(seen));
  }
  model.save("mnist1d.safetensors");
}
