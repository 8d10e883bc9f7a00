#include "case.h"

#include <torch/torch.h>

#include <stdexcept>
#include <vector>

#include <zero/loader.h>
#include <zero/safetensors.h>
#include <zero/settings.h>
#include <zero/sharded.h>
#include "net.h"
#include "norms.h"
#include "vision/cifar10.h"

namespace {

namespace F = torch::nn::functional;

void require(bool condition, const std::string& rule) {
  if (!condition) throw std::invalid_argument(rule);
}

/// case.json, every field of which is understood.
struct Case {
  explicit Case(const std::string& path) {
    const zero::Settings fields(path);
    fields.ignore("name");
    fields.ignore("seed");               // of the file that the parameters come from
    fields.ignore("float64_deviation");  // of the numbers that are expected
    fields.one_of("model", {"resnet18-cifar"});
    width = fields.integer("width");
    classes = fields.integer("classes");
    norm = fields.one_of("norm", {"batch", "group"});
    if (norm == "group") norm_groups = fields.integer("norm_groups");
    fields.ignore("norm_groups");
    if (fields.has("norm_eps")) norm_eps = fields.number("norm_eps");
    if (fields.has("norm_momentum")) norm_momentum = fields.number("norm_momentum");
    train_records = fields.integer("train_records");
    test_records = fields.integer("test_records");
    batch = fields.integer("batch");
    steps = fields.integer("steps");
    pictures.classes = int(classes);
    pictures.mean = three(fields.numbers("mean"), path);
    pictures.std = three(fields.numbers("std"), path);
    if (fields.has("augmentation")) fields.one_of("augmentation", {"none"});
    if (fields.has("loss")) fields.one_of("loss", {"mean cross-entropy"});
    fields.one_of("optimizer", {"sgd"});
    sgd = {.lr = fields.number("lr"),
           .momentum = fields.number("momentum"),
           .nesterov = fields.flag("nesterov"),
           .weight_decay = fields.number("weight_decay")};
    const std::string every = "every parameter";
    const bool decays_all = !fields.has("weight_decay_on") ||
                            fields.one_of("weight_decay_on", {every, "parameters of two or more dimensions"}) == every;
    if (decays_all) sgd.groups = {{.match = {"*"}, .weight_decay = sgd.weight_decay}};
    fields.refuse_others();
    require(steps >= 1 && batch >= 1 && steps * batch <= train_records,
            path + ": " + std::to_string(steps) + " steps of " + std::to_string(batch) + " records, and " +
                std::to_string(train_records) + " are there");
  }

  std::int64_t width, classes, norm_groups = 0, train_records, test_records, batch, steps;
  std::string norm;
  double norm_eps = 1e-5, norm_momentum = 0.1;
  vision::Cifar10Options pictures;
  zero::SgdOptions sgd;

 private:
  static std::array<double, 3> three(const std::vector<double>& values, const std::string& path) {
    require(values.size() == 3, path + ": mean and std are three numbers each");
    return {values[0], values[1], values[2]};
  }
};

/// Rows of several batches, put together on every process.
struct Rows {
  std::vector<torch::Tensor> parts;
  torch::Tensor all() const { return torch::cat(parts); }
};

}  // namespace

void run_case(const std::string& directory, const CaseOptions& options, const zero::World& world) {
  const Case given(directory + "/case.json");
  const auto read = [&](const std::string& file, std::int64_t records) {
    vision::Cifar10 pictures({directory + "/" + file}, given.pictures);
    require(std::int64_t(*pictures.size()) == records, directory + "/" + file + " holds " +
                                                           std::to_string(*pictures.size()) +
                                                           " records, case.json says " + std::to_string(records));
    return pictures.map(torch::data::transforms::Stack<>());
  };
  auto train =
      zero::make_data_loader(read("data_batch_1.bin", given.train_records), world, {.batch_size = given.batch});
  auto test = zero::make_data_loader(read("test_batch.bin", given.test_records), world, {.batch_size = given.batch});

  ResNet18 net(given.width, given.classes,
               given.norm == "batch" ? batch_norm(world, options.local_statistics, given.norm_eps, given.norm_momentum)
                                     : group_norm(given.norm_groups, given.norm_eps));
  zero::load_safetensors(*net, directory + "/model/model.safetensors");
  net->to(world.device());
  zero::Sharded<ResNet18> model(net, world, {.stage = options.stage});
  auto optimizer = model.optimizer(given.sgd);

  zero::NamedTensors out;
  std::vector<double> losses, norms;
  const auto keep = [&](const std::string& name, const torch::Tensor& value) {
    out[name] = value.detach().cpu().clone();
  };
  for (auto& batch : train) {
    if (std::int64_t(losses.size()) == given.steps) break;
    const torch::Tensor logits = model(batch.data);
    const torch::Tensor sum =
        F::cross_entropy(logits, batch.target, F::CrossEntropyFuncOptions().reduction(torch::kSum));
    const std::int64_t rows = train.rows().count;
    model.backward(sum / double(std::max<std::int64_t>(rows, 1)), double(rows));
    losses.push_back(world.sum(sum).item<double>() / double(train.global_rows()));
    if (losses.size() == 1) {
      keep("logits", world.gather_for_metrics(logits));
      keep("loss", torch::tensor(losses[0], torch::kFloat));
      model.for_each_gradient(
          [&](const std::string& name, const torch::Tensor& value) { keep("grad." + name, value); });
    }
    norms.push_back(optimizer.step().grad_norm);
  }
  keep("step.loss", torch::tensor(losses, torch::kDouble));
  keep("step.grad_norm", torch::tensor(norms, torch::kDouble));
  model.for_each_parameter([&](const std::string& name, const torch::Tensor& value) { keep("final." + name, value); });
  for (const auto& buffer : net->named_buffers()) keep("final." + buffer.key(), buffer.value());

  model->eval();
  const torch::NoGradGuard no_grad;
  Rows logits, labels;
  for (auto& batch : test) {
    logits.parts.push_back(world.gather_for_metrics(model(batch.data)));
    labels.parts.push_back(world.gather_for_metrics(batch.target));
  }
  keep("test.logits", logits.all());
  keep("test.loss", F::cross_entropy(logits.all(), labels.all()));
  if (!options.dump.empty()) world.on_main([&] { zero::write_safetensors(options.dump, out); });
  if (!world.is_main()) return;
  for (std::size_t s = 0; s < losses.size(); ++s)
    std::printf("step %zu  loss %.5f  norm %.4f\n", s + 1, losses[s], norms[s]);
  std::printf("test loss %.5f over %lld pictures\n", out["test.loss"].item<double>(), (long long)given.test_records);
}
