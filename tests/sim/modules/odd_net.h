#pragma once
// OddNet: a module with everything that makes sharding hard.
// - a weight that two units share, a block that runs twice, a branch that is not always taken;
// - a parameter that is never used, a frozen child, a partly frozen block;
// - nested children, parameters of the root, parameters without dimensions, two outputs.
#include <torch/torch.h>

namespace zero::testing {

struct OddBlockImpl : torch::nn::Module {
  OddBlockImpl(int width, bool partly_frozen) {
    norm = register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({width})));
    inner = register_module("inner", torch::nn::Sequential(torch::nn::Linear(width, 2 * width), torch::nn::GELU(),
                                                           torch::nn::Linear(2 * width, width)));
    if (partly_frozen) inner[0]->as<torch::nn::Linear>()->weight.set_requires_grad(false);
  }
  at::Tensor forward(const at::Tensor& x) { return x + inner->forward(norm(x)); }

  torch::nn::LayerNorm norm{nullptr};
  torch::nn::Sequential inner{nullptr};
};
TORCH_MODULE(OddBlock);

struct OddNetImpl : torch::nn::Module {
  static constexpr int width = 6, words = 11;

  OddNetImpl() {
    embedding = register_module("embedding", torch::nn::Embedding(words, width));
    frozen = register_module("frozen", torch::nn::Linear(width, width));
    for (at::Tensor& parameter : frozen->parameters()) parameter.set_requires_grad(false);
    blocks = register_module("blocks", torch::nn::ModuleList());
    for (int b = 0; b < 3; ++b) blocks->push_back(OddBlock(width, b == 1));
    branch = register_module("branch", torch::nn::Linear(width, width));
    head = register_module("head", torch::nn::Linear(width, 3));
    temperature = register_parameter("temperature", torch::full({}, 1.5));
    unused = register_parameter("unused", torch::randn({4, 3}));
    seen = register_buffer("seen", torch::zeros({2}));
    to(torch::kDouble);
  }

  /// ids [B, T] -> scores of words [B, T, words] and of classes [B, 3].
  std::tuple<at::Tensor, at::Tensor> forward(const at::Tensor& ids, bool takes_branch) {
    at::Tensor x = frozen(embedding(ids));
    for (const auto& block : *blocks) x = block->as<OddBlock>()->forward(x);
    x = blocks[0]->as<OddBlock>()->forward(x);
    if (takes_branch) x = x + torch::tanh(branch(x));
    const at::Tensor scores = torch::nn::functional::linear(x, embedding->weight) * temperature;
    return {scores, head(x.mean(1))};
  }

  torch::nn::Embedding embedding{nullptr};
  torch::nn::Linear frozen{nullptr}, branch{nullptr}, head{nullptr};
  torch::nn::ModuleList blocks{nullptr};
  at::Tensor temperature, unused, seen;
};
TORCH_MODULE(OddNet);

/// The same values on every rank and in every test.
inline OddNet make_odd_net() {
  torch::manual_seed(7);
  return OddNet();
}

struct OddBatch {
  at::Tensor ids, classes;  // [B, T], [B]
};

/// Rows [begin, begin + count) of the step's batch of `rows`.
inline OddBatch odd_batch(int step, int rows, int begin, int count) {
  at::Generator draws = at::detail::createCPUGenerator(std::uint64_t(100 + step));
  const at::Tensor ids = at::randint(OddNetImpl::words, {rows, 5}, draws, at::kLong),
                   classes = at::randint(3, {rows}, draws, at::kLong);
  return {ids.narrow(0, begin, count), classes.narrow(0, begin, count)};
}

/// Returns the mean over rows of the squared scores of words and classes and of the true class's score; NaN without
/// rows.
inline at::Tensor odd_loss(OddNetImpl& net, const OddBatch& batch, bool takes_branch) {
  const auto [scores, classes] = net.forward(batch.ids, takes_branch);
  return (scores.pow(2).mean({1, 2}) + torch::logsumexp(classes, 1) -
          classes.gather(1, batch.classes.unsqueeze(1)).squeeze(1))
      .mean();
}

}  // namespace zero::testing
