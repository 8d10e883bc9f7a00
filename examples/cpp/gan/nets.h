#pragma once
// The two nets of DCGAN (Radford et al. 2015), made narrow, for 32 x 32 pictures with three colours.
#include <torch/torch.h>

constexpr std::int64_t noise_width = 16;

struct GeneratorImpl : torch::nn::Module {
  GeneratorImpl()
      : body(register_module(
            "body", torch::nn::Sequential(up(noise_width, 64, 1, 0), torch::nn::BatchNorm2d(64), torch::nn::ReLU(),
                                          up(64, 32, 2, 1), torch::nn::BatchNorm2d(32), torch::nn::ReLU(),
                                          up(32, 16, 2, 1), torch::nn::BatchNorm2d(16), torch::nn::ReLU(),
                                          up(16, 3, 2, 1), torch::nn::Tanh()))) {}
  /// Noise [B, noise_width] -> pictures [B, 3, 32, 32] from -1 to 1.
  torch::Tensor forward(const torch::Tensor& noise) { return body->forward(noise.view({-1, noise_width, 1, 1})); }

  static torch::nn::ConvTranspose2d up(std::int64_t in, std::int64_t out, std::int64_t stride, std::int64_t padding) {
    return torch::nn::ConvTranspose2d(
        torch::nn::ConvTranspose2dOptions(in, out, 4).stride(stride).padding(padding).bias(false));
  }
  torch::nn::Sequential body;
};
TORCH_MODULE(Generator);

struct CriticImpl : torch::nn::Module {
  CriticImpl()
      : body(register_module("body", torch::nn::Sequential(down(3, 16, 2, 1), leaky(), down(16, 32, 2, 1),
                                                           torch::nn::BatchNorm2d(32), leaky(), down(32, 64, 2, 1),
                                                           torch::nn::BatchNorm2d(64), leaky(), down(64, 1, 1, 0)))) {}
  /// Pictures -> logits [B], which are positive for pictures judged real.
  torch::Tensor forward(const torch::Tensor& pictures) { return body->forward(pictures).flatten(); }

  static torch::nn::Conv2d down(std::int64_t in, std::int64_t out, std::int64_t stride, std::int64_t padding) {
    return torch::nn::Conv2d(torch::nn::Conv2dOptions(in, out, 4).stride(stride).padding(padding).bias(false));
  }
  static torch::nn::LeakyReLU leaky() {
    return torch::nn::LeakyReLU(torch::nn::LeakyReLUOptions().negative_slope(0.2));
  }
  torch::nn::Sequential body;
};
TORCH_MODULE(Critic);

/// Initialises convolutions as the paper does.
inline void initialise(torch::nn::Module& net) {
  const torch::NoGradGuard no_grad;
  for (torch::Tensor& parameter : net.parameters())
    if (parameter.dim() == 4) parameter.normal_(0, 0.02);
}
