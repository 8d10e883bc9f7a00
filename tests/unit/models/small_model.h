#pragma once
// Small models for tests: random weights, gradients by autograd, the golden cases.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <map>
#include <string>

#include "models/decoder/decoder.h"
#include "models/families/families.h"
#include "models/model.h"
#include "models/ops/kv_cache.h"

namespace zero::test {

inline ModelConfig small_config() {
  ModelConfig config;
  config.vocab_size = 61;
  config.hidden_size = 32;
  config.intermediate_size = 48;
  config.num_hidden_layers = 2;
  config.num_attention_heads = 4;
  config.num_key_value_heads = 2;
  config.head_dim = 16;
  return config;
}

inline at::Tensor random(at::IntArrayRef shape, std::uint64_t seed, at::ScalarType type = at::kDouble) {
  return at::randn(shape, at::make_generator<at::CPUGeneratorImpl>(seed), at::kDouble).to(type);
}

inline void share_with_borrowers(Model& model) {
  for (auto& unit : model.units)
    for (BorrowedParameter& borrowed : unit->borrowed()) {
      const at::Tensor& owner = model.units[borrowed.owner_unit]->parameters()[borrowed.owner_parameter].tensor;
      borrowed.tensor = owner.detach().set_requires_grad(owner.requires_grad());
    }
}

/// Fills the model with random weights, the same values in every type.
inline Model with_random_weights(Model model, at::ScalarType type) {
  hold_parameters(model, type);
  std::uint64_t seed = 1;
  for (auto& unit : model.units)
    for (Parameter& parameter : unit->parameters()) {
      const at::Tensor noise = random(parameter.shape(), seed++);
      parameter.tensor.copy_(parameter.init == Init::ones ? 1 + 0.2 * noise : 0.15 * noise);
      parameter.tensor.set_requires_grad(parameter.trainable);
    }
  share_with_borrowers(model);
  return model;
}

/// Makes a model with random weights, all trainable.
inline Model random_model(const ModelConfig& config, at::ScalarType type = at::kDouble) {
  return with_random_weights(make_model(config), type);
}

/// Runs the chain up to the head's input.
inline at::Tensor run_to_head(Model& model, const ForwardContext& context) {
  at::Tensor x;
  for (std::size_t i = 0; i + 1 < model.units.size(); ++i) x = model.units[i]->forward(x, context);
  return x;
}

inline at::Tensor run_loss(Model& model, const Batch& batch) {
  ForwardContext context;
  context.batch = &batch;
  const at::Tensor x = run_to_head(model, context);
  return model.units.back()->forward(x, context);
}

inline at::Tensor run_logits(Model& model, const Batch& batch, KvCache* cache = nullptr) {
  const at::NoGradGuard no_grad;
  ForwardContext context;
  context.batch = &batch;
  context.cache = cache;
  return logits_of(*model.units.back(), run_to_head(model, context), context);
}

/// Returns the gradients of scale * loss, by tensor names as in files. A borrower's gradient is added to its owner's.
inline std::map<std::string, at::Tensor> gradients(Model& model, const at::Tensor& loss, double scale = 1) {
  std::vector<at::Tensor> leaves;
  for (auto& unit : model.units) {
    for (Parameter& parameter : unit->parameters())
      if (parameter.tensor.requires_grad()) leaves.push_back(parameter.tensor);
    for (BorrowedParameter& borrowed : unit->borrowed())
      if (borrowed.tensor.requires_grad()) leaves.push_back(borrowed.tensor);
  }
  const auto grads = torch::autograd::grad({loss * scale}, leaves);
  std::map<std::string, at::Tensor> named;
  std::size_t next = 0;
  for (auto& unit : model.units) {
    for (Parameter& parameter : unit->parameters()) {
      if (!parameter.tensor.requires_grad()) continue;
      const at::Tensor& grad = grads[next++];
      std::int64_t row = 0;
      for (const TensorSpec& part : parameter.parts) {
        named[part.name] = grad.narrow(0, row, part.shape[0]);
        row += part.shape[0];
      }
    }
    for (BorrowedParameter& borrowed : unit->borrowed()) {
      if (!borrowed.tensor.requires_grad()) continue;
      at::Tensor& mine = named[model.units[borrowed.owner_unit]->parameters()[borrowed.owner_parameter].parts[0].name];
      mine = mine + grads[next++];
    }
  }
  return named;
}

/// Returns the largest deviation, relative to the largest entry of `right`.
inline double deviation(const at::Tensor& left, const at::Tensor& right) {
  const at::Tensor a = left.detach().to(at::kDouble), b = right.detach().to(at::kDouble);
  return ((a - b).abs().max() / b.abs().max().clamp_min(1e-300)).item<double>();
}

}  // namespace zero::test
