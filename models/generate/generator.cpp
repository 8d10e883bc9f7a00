#include "models/generate/generator.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "base/error.h"
#include "base/log.h"
#include "models/decoder/decoder.h"

namespace zero {

at::Tensor last_column_logits(Unit& head, const at::Tensor& x_BTD, const ForwardContext& context) {
  return logits_of(head, x_BTD.narrow(1, x_BTD.size(1) - 1, 1), context).select(1, 0);
}

/// The state of every row of the growing batch.
struct Generator::Rows {
  std::vector<Ids> ids;  // prompt and new tokens
  std::vector<Ids> made;
  std::vector<bool> ended;
  std::vector<Sampler> samplers;

  bool all_ended() const {
    return std::all_of(ended.begin(), ended.end(), [](bool end) { return end; });
  }
};

Generator::Generator(Model& model) : config_(model.config), model_(&model) {
  last_logits_ = [&model](const ForwardContext& context) {
    at::Tensor x_BTD;
    for (std::size_t i = 0; i + 1 < model.units.size(); ++i) x_BTD = model.units[i]->forward(x_BTD, context);
    return last_column_logits(*model.units.back(), x_BTD, context);
  };
}

Generator::Generator(const ModelConfig& config, LastLogits last_logits)
    : config_(config), last_logits_(std::move(last_logits)) {}

/// Which frequencies the model's ropes use for a sequence of `tokens` ("longrope"), one bit per rope. If a rope
/// switches to other frequencies, the sequence's keys are computed again.
int Generator::stretch_of(std::size_t tokens) const {
  const auto length = static_cast<std::int64_t>(tokens);
  return 2 * is_beyond_old_context(config_.rope_scaling, length) +
         is_beyond_old_context(config_.local_rope_scaling, length);
}

void Generator::check(const std::vector<Ids>& prompts) const {
  const std::int64_t context = config_.max_position_embeddings;
  for (const Ids& prompt : prompts) {
    if (prompt.empty()) throw InputError("a prompt must have at least one token");
    if (static_cast<std::int64_t>(prompt.size()) > context)
      throw InputError(text("the prompt has ", prompt.size(), " tokens; the model's context is ", context));
    for (const std::int32_t id : prompt)
      if (id < 0 || id >= config_.vocab_size)
        throw InputError(text("token id ", id, " of the prompt is outside the model's vocabulary of ",
                              config_.vocab_size, "; do model and tokenizer belong together?"));
  }
}

std::vector<Generator::Ids> Generator::generate(const std::vector<Ids>& prompts, const GenerateOptions& options,
                                                const OnToken& on_token) {
  const at::NoGradGuard no_grad;
  check(prompts);
  validate(options.sampling);
  Rows rows{prompts, std::vector<Ids>(prompts.size()), std::vector<bool>(prompts.size()), {}};
  for (std::size_t row = 0; row < prompts.size(); ++row)
    rows.samplers.emplace_back(options.sampling, static_cast<std::int64_t>(row));
  if (prompts.empty() || options.max_new_tokens < 1) return rows.made;

  at::Tensor logits_BV = prompts.size() == 1 ? begin_one(prompts.front()) : begin(prompts);
  for (std::int64_t made = 1;; ++made) {
    for (std::size_t row = 0; row < prompts.size(); ++row) {
      if (rows.ended[row]) continue;
      const at::Tensor mine = logits_BV[static_cast<std::int64_t>(row)].contiguous();
      const std::int32_t id = rows.samplers[row].next(
          {mine.const_data_ptr<float>(), static_cast<std::size_t>(mine.numel())}, rows.ids[row]);
      rows.ids[row].push_back(id);
      rows.made[row].push_back(id);
      if (on_token) on_token(static_cast<std::int64_t>(row), id);
      rows.ended[row] = std::find(options.stop_ids.begin(), options.stop_ids.end(), id) != options.stop_ids.end() ||
                        static_cast<std::int64_t>(rows.ids[row].size()) >= config_.max_position_embeddings;
    }
    if (rows.all_ended() || made == options.max_new_tokens) return rows.made;
    logits_BV = step(rows);
  }
}

/// [B, vocabulary] in fp32: the logits after the batch's last column.
at::Tensor Generator::last_logits(const Batch& batch) {
  const ForwardContext context{.batch = &batch, .cache = cache_.get()};
  return last_logits_(context).to(at::kCPU, at::kFloat);
}

/// Runs all prompts at once, padded on the left, so that all rows append to the same column.
at::Tensor Generator::begin(const std::vector<Ids>& prompts) {
  std::size_t longest = 0;
  for (const Ids& prompt : prompts) longest = std::max(longest, prompt.size());
  const std::vector<std::int64_t> shape{static_cast<std::int64_t>(prompts.size()), static_cast<std::int64_t>(longest)};
  Batch batch{at::zeros(shape, at::kLong), {}, at::zeros(shape, at::kLong), at::full(shape, -1, at::kInt)};
  for (std::int64_t row = 0; row < shape[0]; ++row) {
    const Ids& prompt = prompts[static_cast<std::size_t>(row)];
    const auto n = static_cast<std::int64_t>(prompt.size());
    batch.ids[row].narrow(0, shape[1] - n, n).copy_(at::tensor(at::ArrayRef<int>(prompt), at::kLong));
    batch.positions[row].narrow(0, shape[1] - n, n).copy_(at::arange(n));
    batch.documents[row].narrow(0, shape[1] - n, n).zero_();
  }
  cached_.clear();
  cache_ = std::make_unique<KvCache>(config_.num_hidden_layers, shape[1] + config_.max_position_embeddings);
  return last_logits(batch);
}

at::Tensor Generator::begin_one(const Ids& prompt) {
  if (!cache_ || cached_.empty() || stretch_of(cached_.size()) != stretch_of(prompt.size())) {
    cached_.clear();
    cache_ = std::make_unique<KvCache>(config_.num_hidden_layers, config_.max_position_embeddings);
  }
  // always compute the last token: its logits are needed
  const auto common =
      std::mismatch(prompt.begin(), prompt.end() - 1, cached_.begin(), cached_.end()).first - prompt.begin();
  cache_->rewind(common);
  cached_ = prompt;
  const auto n = static_cast<std::int64_t>(prompt.size()) - common;
  const at::Tensor ids =
      at::tensor(at::ArrayRef<int>(prompt.data() + common, static_cast<std::size_t>(n)), at::kLong).unsqueeze(0);
  return last_logits({ids, {}, at::arange(common, common + n, at::kLong).unsqueeze(0), {}});
}

at::Tensor Generator::step(const Rows& rows) {
  const auto count = static_cast<std::int64_t>(rows.ids.size());
  bool anew = false;
  for (std::size_t row = 0; row < rows.ids.size(); ++row) {
    const std::size_t length = rows.ids[row].size();
    anew = anew || (!rows.ended[row] && stretch_of(length) != stretch_of(length - 1));
  }
  if (anew) return count == 1 ? begin_one(rows.ids.front()) : begin(rows.ids);
  Batch batch{at::zeros({count, 1}, at::kLong), {}, at::zeros({count, 1}, at::kLong), {}};
  for (std::int64_t row = 0; row < count; ++row) {
    const Ids& ids = rows.ids[static_cast<std::size_t>(row)];
    batch.ids[row][0] = ids.back();
    batch.positions[row][0] = static_cast<std::int64_t>(ids.size()) - 1;
  }
  if (count == 1) cached_.push_back(rows.ids.front().back());
  return last_logits(batch);
}

at::Tensor Generator::logits(const Ids& ids) {
  const at::NoGradGuard no_grad;
  check({ids});
  const Batch batch{at::tensor(at::ArrayRef<int>(ids), at::kLong).unsqueeze(0), {}, {}, {}};
  const ForwardContext context{.batch = &batch};
  at::Tensor x_BTD;
  for (std::size_t i = 0; i + 1 < model_->units.size(); ++i) x_BTD = model_->units[i]->forward(x_BTD, context);
  return logits_of(*model_->units.back(), x_BTD, context);
}

}  // namespace zero
