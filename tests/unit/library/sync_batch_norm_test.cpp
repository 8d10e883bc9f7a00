#include "zero/library/include/zero/nn/sync_batch_norm.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gmock/gmock.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/linear.h>

#include <mutex>

#include "base/error.h"
#include "tests/unit/library/worlds.h"
#include "tests/unit/message_of.h"
#include "zero/library/include/zero/batch_rows.h"
#include "zero/library/include/zero/nn/convert_sync_batchnorm.h"

namespace zero::nn {
namespace {

using ::testing::HasSubstr;

/// How rows are split over processes.
using Split = std::vector<std::int64_t>;
const std::vector<Split> splits{{7}, {4, 3}, {7, 0}, {0, 7}, {1, 6}, {3, 0, 4}, {2, 2, 3}, {0, 0, 7, 0}, {1, 2, 1, 3}};

/// A norm's results over some steps: outputs, gradients of all kinds, final buffers.
struct Traces {
  std::vector<at::Tensor> outputs, input_grads;
  at::Tensor weight_grad, bias_grad, running_mean, running_var, evaluated;
  std::int64_t batches = 0;
};

at::Tensor data(const std::vector<std::int64_t>& shape, std::int64_t seed) {
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(std::uint64_t(seed));
  return at::randn(shape, generator, at::kDouble).mul_(2).add_(3);
}

/// Three steps over rows [begin, begin + count) of the same data; the loss weighs each output differently.
template <typename Norm>
Traces trace(Norm norm, const std::vector<std::int64_t>& shape, RowRange rows, at::ScalarType type = at::kDouble) {
  norm->to(type);
  if (norm->weight.defined()) {
    const at::NoGradGuard no_grad;
    norm->weight.copy_(data({shape[1]}, 100));
    norm->bias.copy_(data({shape[1]}, 101));
  }
  Traces traces;
  for (int step = 0; step < 3; ++step) {
    const at::Tensor x = data(shape, step).narrow(0, rows.begin, rows.count).to(type).clone().requires_grad_();
    const at::Tensor y = norm->forward(x);
    (y * data(shape, 50 + step).narrow(0, rows.begin, rows.count).to(type)).square().sum().backward();
    traces.outputs.push_back(y.detach());
    traces.input_grads.push_back(x.grad());
  }
  if (norm->weight.defined()) {
    traces.weight_grad = norm->weight.grad();
    traces.bias_grad = norm->bias.grad();
  }
  if (norm->running_mean.defined()) {
    traces.running_mean = norm->running_mean;
    traces.running_var = norm->running_var;
    traces.batches = norm->num_batches_tracked.template item<std::int64_t>();
  }
  norm->eval();
  traces.evaluated = norm->forward(data(shape, 9).narrow(0, rows.begin, rows.count).to(type)).detach();
  return traces;
}

double distance(const at::Tensor& a, const at::Tensor& b) {
  if (a.sizes() != b.sizes()) return INFINITY;
  if (b.numel() == 0) return 0;
  return ((a - b).abs().max() / b.abs().max()).item<double>();
}

/// A norm of LibTorch's, converted, made as a SyncBatchNorm is.
template <typename Norm>
struct Converted : Norm {
  Converted(const torch::nn::BatchNormOptions& options, const World& world) : Norm(options) {
    this->get()->to(at::kDouble);
    EXPECT_EQ(convert_sync_batchnorm(**this, world), 1);
  }
};

/// Compares the processes' norm with torch's on one process with all rows.
template <typename Plain, typename Sync>
void expect_equal(const torch::nn::BatchNormOptions& options, const std::vector<std::int64_t>& tail) {
  std::vector<std::int64_t> shape{7, 3};
  shape.insert(shape.end(), tail.begin(), tail.end());
  const Traces expected = trace(Plain(options), shape, {0, 7});
  for (const Split& split : splits) {
    SCOPED_TRACE(::testing::PrintToString(split));
    std::mutex mutex;
    at::Tensor weight_grad = at::zeros({3}, at::kDouble), bias_grad = at::zeros({3}, at::kDouble);
    on_worlds(int(split.size()), [&](const World& world) {
      RowRange rows{0, split[std::size_t(world.rank())]};
      for (int r = 0; r < world.rank(); ++r) rows.begin += split[std::size_t(r)];
      const Traces traces = trace(Sync(options, world), shape, rows);
      const std::lock_guard<std::mutex> lock(mutex);
      const auto mine = [&](const at::Tensor& all) { return all.narrow(0, rows.begin, rows.count); };
      for (std::size_t step = 0; step < 3; ++step) {
        EXPECT_LT(distance(traces.outputs[step], mine(expected.outputs[step])), 1e-12);
        EXPECT_LT(distance(traces.input_grads[step], mine(expected.input_grads[step])), 1e-12);
      }
      if (traces.weight_grad.defined()) {
        weight_grad += traces.weight_grad;
        bias_grad += traces.bias_grad;
      }
      ASSERT_EQ(traces.running_mean.defined(), expected.running_mean.defined());
      if (traces.running_mean.defined()) {
        EXPECT_LT(distance(traces.running_mean, expected.running_mean), 1e-12);
        EXPECT_LT(distance(traces.running_var, expected.running_var), 1e-12);
        EXPECT_LT(distance(traces.evaluated, mine(expected.evaluated)), 1e-12);
      }
      EXPECT_EQ(traces.batches, expected.batches);
    });
    if (expected.weight_grad.defined()) {
      EXPECT_LT(distance(weight_grad, expected.weight_grad), 1e-12);
      EXPECT_LT(distance(bias_grad, expected.bias_grad), 1e-12);
    }
  }
}

TEST(SyncBatchNorm, IsBatchNormOfAllRowsHoweverTheyAreSplit) {
  expect_equal<torch::nn::BatchNorm2d, SyncBatchNorm2d>({3}, {2, 5});
  expect_equal<torch::nn::BatchNorm1d, SyncBatchNorm1d>({3}, {});
  expect_equal<torch::nn::BatchNorm1d, SyncBatchNorm1d>({3}, {4});
  expect_equal<torch::nn::BatchNorm3d, SyncBatchNorm3d>({3}, {2, 2, 2});
}

TEST(SyncBatchNorm, OptionsMeanWhatTheyMeanInTorch) {
  using Options = torch::nn::BatchNormOptions;
  expect_equal<torch::nn::BatchNorm2d, SyncBatchNorm2d>(Options(3).momentum(0.7).eps(0.3), {2, 2});
  expect_equal<torch::nn::BatchNorm2d, SyncBatchNorm2d>(Options(3).momentum(std::nullopt), {2, 2});
  expect_equal<torch::nn::BatchNorm2d, SyncBatchNorm2d>(Options(3).affine(false), {2, 2});
  expect_equal<torch::nn::BatchNorm2d, SyncBatchNorm2d>(Options(3).track_running_stats(false), {2, 2});
}

TEST(ConvertSyncBatchNorm, MakesOrdinaryNormsThoseOfAllRows) {
  using Options = torch::nn::BatchNormOptions;
  expect_equal<torch::nn::BatchNorm2d, Converted<torch::nn::BatchNorm2d>>({3}, {2, 5});
  expect_equal<torch::nn::BatchNorm1d, Converted<torch::nn::BatchNorm1d>>({3}, {4});
  expect_equal<torch::nn::BatchNorm3d, Converted<torch::nn::BatchNorm3d>>({3}, {2, 1, 2});
  expect_equal<torch::nn::BatchNorm2d, Converted<torch::nn::BatchNorm2d>>(Options(3).momentum(std::nullopt), {2, 2});
  expect_equal<torch::nn::BatchNorm2d, Converted<torch::nn::BatchNorm2d>>(Options(3).affine(false), {2, 2});
}

TEST(ConvertSyncBatchNorm, FindsNormsWhereverTheyAreAndLeavesOthersAlone) {
  on_worlds(2, [](const World& world) {
    torch::nn::BatchNorm1d inner(2), other(2);
    torch::nn::ModuleList net(torch::nn::Linear(2, 2), torch::nn::ModuleList(inner), torch::nn::BatchNorm2d(1));
    EXPECT_EQ(convert_sync_batchnorm(*net, world), 2);
    const at::Tensor x = at::full({2, 2}, double(world.rank())), y = other(x);
    EXPECT_TRUE(inner(x).allclose(at::full({2, 2}, world.is_main() ? -1.0 : 1.0), 1e-4));
    EXPECT_EQ(y.abs().max().item<double>(), 0);
    EXPECT_THAT(
        message_of<InputError>([&] {
          convert_sync_batchnorm(
              *torch::nn::ModuleList(torch::nn::BatchNorm1d(torch::nn::BatchNormOptions(2).track_running_stats(false))),
              world);
        }),
        HasSubstr("convert_sync_batchnorm: 0 keeps no running statistics"));
  });
}

TEST(SyncBatchNorm, IsOfTheTypeOfItsInput) {
  for (const auto& [type, tolerance] : {std::pair{at::kFloat, 2e-5}, {at::kBFloat16, 3e-2}}) {
    const std::vector<std::int64_t> shape{7, 3, 2, 5};
    const Traces expected = trace(torch::nn::BatchNorm2d(3), shape, {0, 7});
    on_worlds(2, [&, type = type, tolerance = tolerance](const World& world) {
      const RowRange rows = world.is_main() ? RowRange{0, 5} : RowRange{5, 2};
      const Traces traces = trace(SyncBatchNorm2d(3, world), shape, rows, type);
      for (std::size_t step = 0; step < 3; ++step) {
        EXPECT_EQ(traces.outputs[step].scalar_type(), type);
        EXPECT_LT(
            distance(traces.outputs[step].to(at::kDouble), expected.outputs[step].narrow(0, rows.begin, rows.count)),
            tolerance);
        EXPECT_LT(distance(traces.input_grads[step].to(at::kDouble),
                           expected.input_grads[step].narrow(0, rows.begin, rows.count)),
                  tolerance);
      }
      EXPECT_LT(distance(traces.running_var.to(at::kDouble), expected.running_var), tolerance);
    });
  }
}

// Another rounding would flip a ReLU after it here and there.
TEST(SyncBatchNorm, OnOneProcessHasTheBitsOfTorch) {
  for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
    const std::vector<std::int64_t> shape{7, 3, 2, 5};
    const Traces expected = trace(torch::nn::BatchNorm2d(3), shape, {0, 7}, type);
    on_worlds(1, [&](const World& world) {
      const Traces traces = trace(SyncBatchNorm2d(3, world), shape, {0, 7}, type);
      for (std::size_t step = 0; step < 3; ++step) {
        EXPECT_TRUE(traces.outputs[step].equal(expected.outputs[step]));
        EXPECT_TRUE(traces.input_grads[step].equal(expected.input_grads[step]));
      }
      EXPECT_TRUE(traces.weight_grad.equal(expected.weight_grad));
      EXPECT_TRUE(traces.running_mean.equal(expected.running_mean));
      EXPECT_TRUE(traces.running_var.equal(expected.running_var));
    });
  }
}

TEST(SyncBatchNorm, Takes16BitInputsWith32BitStatistics) {
  on_worlds(1, [](const World& world) {
    SyncBatchNorm2d norm(3, world);
    norm->weight.set_data(norm->weight.to(at::kBFloat16));  // as a module sharded with bf16 has them
    norm->bias.set_data(norm->bias.to(at::kBFloat16));
    const at::Tensor x = data({4, 3, 2, 2}, 1).to(at::kBFloat16);
    EXPECT_EQ(norm(x).scalar_type(), at::kBFloat16);
    EXPECT_EQ(norm->running_mean.scalar_type(), at::kFloat);
    norm->eval();
    const at::Tensor expected =
        at::batch_norm(x.to(at::kFloat), {}, {}, norm->running_mean, norm->running_var, false, 0, 1e-5, false);
    EXPECT_LT(distance(norm(x).to(at::kFloat), expected), 1e-2);
  });
}

TEST(SyncBatchNorm, IsOneCollectiveForwardAndOneBackward) {
  SimWorld world(2);
  world.run([](Communicator& ranks, int) {
    SyncBatchNorm2d norm(3, world_of(ranks));
    norm(at::randn({2, 3, 4, 4}).requires_grad_()).sum().backward();
    norm(at::randn({2, 3, 4, 4})).sum().backward();  // weight and bias alone: no sum over processes
    EXPECT_TRUE(norm->weight.grad().defined());
    norm->eval();
    norm(at::randn({2, 3, 4, 4}).requires_grad_()).sum().backward();
  });
  EXPECT_EQ(world.calls(0).size(), 3u);
}

TEST(SyncBatchNorm, HasTheNamesOfBatchNorm) {
  on_worlds(1, [](const World& world) {
    const SyncBatchNorm2d sync(3, world);
    const torch::nn::BatchNorm2d plain(3);
    EXPECT_EQ(sync->named_parameters().keys(), plain->named_parameters().keys());
    EXPECT_EQ(sync->named_buffers().keys(), plain->named_buffers().keys());
  });
}

TEST(SyncBatchNorm, RefusesWhatHasNoStatistics) {
  on_worlds(2, [](const World& world) {
    SyncBatchNorm1d norm(3, world);
    EXPECT_THAT(message_of<InputError>([&] {
                  norm(at::randn({world.is_main() ? 1 : 0, 3}));
                }),
                HasSubstr("all processes together have 1: a larger batch, or eval() mode"));
    EXPECT_THAT(message_of<InputError>([&] { norm(at::randn({0, 3})); }), HasSubstr("together have 0"));
    EXPECT_THAT(message_of<InputError>([&] {
                  norm(at::randn({4, 5}));
                }),
                HasSubstr("SyncBatchNorm1d of 3 channels was given a tensor of [4, 5]"));
    const at::Tensor x = at::randn({4, 3}).requires_grad_();
    const at::Tensor loss = norm(x).square().sum();
    EXPECT_THAT(message_of<InputError>([&] { torch::autograd::grad({loss}, {x}, {}, true, true); }),
                HasSubstr("no second derivative"));
  });
}

}  // namespace
}  // namespace zero::nn
