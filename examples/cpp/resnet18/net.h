#pragma once
// ResNet18 for 32 x 32 pictures (He et al. 2016), with a 3 x 3 conv1 and without max-pooling. Parameters have
// torchvision's names.
#include <torch/torch.h>

#include <algorithm>
#include <functional>
#include <string>

/// Makes a norm for this number of channels.
using MakeNorm = std::function<torch::nn::AnyModule(std::int64_t channels)>;

inline torch::nn::Conv2d convolution(std::int64_t in, std::int64_t out, std::int64_t size, std::int64_t stride) {
  return torch::nn::Conv2d(torch::nn::Conv2dOptions(in, out, size).stride(stride).padding(size / 2).bias(false));
}

struct BasicBlockImpl : torch::nn::Module {
  BasicBlockImpl(std::int64_t in, std::int64_t out, std::int64_t stride, const MakeNorm& norm)
      : conv1(register_module("conv1", convolution(in, out, 3, stride))),
        bn1(norm(out)),
        conv2(register_module("conv2", convolution(out, out, 3, 1))),
        bn2(norm(out)) {
    register_module("bn1", bn1.ptr());
    register_module("bn2", bn2.ptr());
    if (stride == 1 && in == out) return;
    downsample->push_back(convolution(in, out, 1, stride));
    downsample->push_back(norm(out));
    register_module("downsample", downsample);
  }
  torch::Tensor forward(const torch::Tensor& x) {
    const torch::Tensor y = bn2.forward(conv2(torch::relu(bn1.forward(conv1(x)))));
    return torch::relu(y + (downsample->is_empty() ? x : downsample->forward(x)));
  }
  torch::nn::Conv2d conv1;
  torch::nn::AnyModule bn1;
  torch::nn::Conv2d conv2;
  torch::nn::AnyModule bn2;
  torch::nn::Sequential downsample;
};
TORCH_MODULE(BasicBlock);

struct ResNet18Impl : torch::nn::Module {
  ResNet18Impl(std::int64_t width, std::int64_t classes, const MakeNorm& norm)
      : conv1(register_module("conv1", convolution(3, width, 3, 1))),
        bn1(norm(width)),
        fc(torch::nn::Linear(8 * width, classes)) {
    register_module("bn1", bn1.ptr());
    for (int stage = 0; stage < 4; ++stage) {
      const std::int64_t in = std::max(width, (width << stage) / 2), out = width << stage;
      layers->push_back(
          torch::nn::Sequential(BasicBlock(in, out, stage == 0 ? 1 : 2, norm), BasicBlock(out, out, 1, norm)));
      register_module("layer" + std::to_string(stage + 1), layers[stage]);
    }
    register_module("fc", fc);
  }
  /// x [rows, 3, 32, 32] -> [rows, classes].
  torch::Tensor forward(torch::Tensor x) {
    x = torch::relu(bn1.forward(conv1(x)));
    for (const auto& layer : *layers) x = layer->as<torch::nn::SequentialImpl>()->forward(x);
    return fc(x.mean({2, 3}));
  }
  torch::nn::Conv2d conv1;
  torch::nn::AnyModule bn1;
  torch::nn::ModuleList layers;
  torch::nn::Linear fc;
};
TORCH_MODULE(ResNet18);
