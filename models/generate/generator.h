#pragma once
// Generator: continues text token by token, with a model that holds all its parameters and a cache of keys and values.
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "models/generate/sampler.h"
#include "models/model.h"
#include "models/ops/kv_cache.h"
#include "models/unit.h"

namespace zero {

struct GenerateOptions {
  std::int64_t max_new_tokens = 100;
  std::vector<std::int64_t> stop_ids;  // a row ends at the first of these, which is part of the result
  SamplingOptions sampling = {};
};

/// [B, vocabulary]: the logits after the last column of the head's input [B, T, hidden].
at::Tensor last_column_logits(Unit& head, const at::Tensor& x_BTD, const ForwardContext& context);

class Generator {
 public:
  using Ids = std::vector<std::int32_t>;
  /// Called for every new token as soon as it is known.
  using OnToken = std::function<void(std::int64_t row, std::int32_t id)>;

  /// Runs the chain of units, and returns [B, vocabulary]: the logits after the batch's last column.
  using LastLogits = std::function<at::Tensor(const ForwardContext&)>;

  /// `model` must outlive the generator. Call hold_parameters() and fill the parameters first.
  explicit Generator(Model& model);
  /// For a model whose units other code runs, such as ranks that share its weights. `config` must outlive the
  /// generator.
  Generator(const ModelConfig& config, LastLogits last_logits);

  /// Returns the new tokens for every prompt, without the prompt. Rows end at a stop id, after max_new_tokens, or when
  /// the context is full. Rows do not influence one another. Throws InputError for an empty prompt, an id outside the
  /// vocabulary or a prompt that leaves no room in the context. If there is one prompt, the prefix that it shares with
  /// the previous call's tokens is not computed again.
  std::vector<Ids> generate(const std::vector<Ids>& prompts, const GenerateOptions& options,
                            const OnToken& on_token = {});

  /// Returns logits [1, T, vocabulary] in fp32 for all T ids at once. The generator must have been made from a Model.
  at::Tensor logits(const Ids& ids);

 private:
  struct Rows;
  void check(const std::vector<Ids>& prompts) const;
  int stretch_of(std::size_t tokens) const;
  at::Tensor last_logits(const Batch& batch);
  at::Tensor begin(const std::vector<Ids>& prompts);
  at::Tensor begin_one(const Ids& prompt);
  at::Tensor step(const Rows& rows);

  const ModelConfig& config_;
  Model* model_ = nullptr;
  LastLogits last_logits_;
  std::unique_ptr<KvCache> cache_;
  Ids cached_;  // the tokens in the cache; empty if the cache holds several rows
};

}  // namespace zero
