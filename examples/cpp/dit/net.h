#pragma once
// A small diffusion transformer (Peebles and Xie 2023): its tokens are patches of a picture, and its AdaLN-Zero blocks
// are conditioned on time and class.
#include <torch/torch.h>

#include <cmath>

#include "adaptive_layer_norm.h"

struct BlockImpl : torch::nn::Module {
  BlockImpl(std::int64_t size, std::int64_t heads)
      : heads(heads),
        ada(register_module("ada", AdaptiveLayerNormZero(size, size))),
        qkv(register_module("qkv", torch::nn::Linear(size, 3 * size))),
        out(register_module("out", torch::nn::Linear(size, size))),
        up(register_module("up", torch::nn::Linear(size, 4 * size))),
        down(register_module("down", torch::nn::Linear(4 * size, size))) {}

  /// x [rows, tokens, size], condition [rows, size].
  torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& condition) {
    const auto branches = ada(condition);
    const auto y = branches[0].gated(x, attention(branches[0].norm(x)));
    return branches[1].gated(y, down(torch::gelu(up(branches[1].norm(y)), "tanh")));
  }

 private:
  torch::Tensor attention(const torch::Tensor& x) {
    const std::int64_t tokens = x.size(1), size = x.size(2);
    const auto parts = qkv(x).view({-1, tokens, 3, heads, size / heads}).permute({2, 0, 3, 1, 4}).unbind(0);
    const auto y = torch::matmul(
        torch::softmax(torch::matmul(parts[0] / std::sqrt(double(size / heads)), parts[1].transpose(-2, -1)), -1),
        parts[2]);
    return out(y.transpose(1, 2).reshape({-1, tokens, size}));
  }

  std::int64_t heads;
  AdaptiveLayerNormZero ada;
  torch::nn::Linear qkv, out, up, down;
};
TORCH_MODULE(Block);

struct DiTOptions {
  std::int64_t channels = 3, picture = 32, patch = 4, size = 64, heads = 4, depth = 3, classes = 10;
};

struct DiTImpl : torch::nn::Module {
  explicit DiTImpl(const DiTOptions& o)
      : options(o),
        patches(register_module(
            "patches", torch::nn::Conv2d(torch::nn::Conv2dOptions(o.channels, o.size, o.patch).stride(o.patch)))),
        time(register_module("time", torch::nn::Sequential(torch::nn::Linear(o.size, o.size), torch::nn::SiLU(),
                                                           torch::nn::Linear(o.size, o.size)))),
        label(register_module("label", torch::nn::Embedding(o.classes, o.size))),
        blocks(register_module("blocks", torch::nn::ModuleList())),
        last(register_module("last", AdaptiveLayerNormZero(o.size, o.size, 1))),
        out(register_module("out", torch::nn::Linear(o.size, o.channels * o.patch * o.patch))) {
    const std::int64_t side = o.picture / o.patch;
    places = register_parameter("places", 0.02 * torch::randn({1, side * side, o.size}));
    for (std::int64_t b = 0; b < o.depth; ++b) blocks->push_back(Block(o.size, o.heads));
    const torch::NoGradGuard no_grad;
    out->weight.zero_();
    out->bias.zero_();
  }

  /// x: pictures [rows, channels, side, side] at times [rows] from 0 to 1, with classes [rows]. Returns the flow, which
  /// has the pictures' shape.
  torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& times, const torch::Tensor& classes) {
    const std::int64_t side = options.picture / options.patch, patch = options.patch;
    const auto condition = time->forward(waves(times)) + label(classes);
    auto tokens = patches(x).flatten(2).transpose(1, 2) + places;
    for (const auto& block : *blocks) tokens = block->as<BlockImpl>()->forward(tokens, condition);
    return out(last(condition)[0].norm(tokens))
        .view({-1, side, side, options.channels, patch, patch})
        .permute({0, 3, 1, 4, 2, 5})
        .reshape({-1, options.channels, options.picture, options.picture});
  }

 private:
  /// Returns sines and cosines of times [rows] with frequencies 1 to 1000, as [rows, size].
  torch::Tensor waves(const torch::Tensor& times) const {
    const auto angles =
        times.unsqueeze(1) * torch::exp(torch::linspace(0, std::log(1000.0), options.size / 2, times.options()));
    return torch::cat({angles.sin(), angles.cos()}, 1);
  }

  DiTOptions options;
  torch::nn::Conv2d patches;
  torch::nn::Sequential time;
  torch::nn::Embedding label;
  torch::nn::ModuleList blocks;
  AdaptiveLayerNormZero last;
  torch::nn::Linear out;
  torch::Tensor places;
};
TORCH_MODULE(DiT);
