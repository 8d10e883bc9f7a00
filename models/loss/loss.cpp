#include "models/loss/loss.h"

#include <ATen/ATen.h>

#include "base/error.h"
#include "models/loss/cross_entropy_loss.h"

namespace zero {

at::Tensor LossChunk::select(const at::Tensor& of_tokens) const {
  std::vector<std::int64_t> shape = of_tokens.sizes().vec();
  shape.erase(shape.begin());
  shape[0] = -1;
  const at::Tensor flat = of_tokens.reshape(shape);
  const std::int64_t n = targets.size(0);
  return places.defined() ? flat.index_select(0, places.narrow(0, begin, n)) : flat.narrow(0, begin, n);
}

LossVerdict Loss::judge(const at::Tensor&, const Batch&) const {
  throw InternalError("the loss " + name() + " looks once and judges nothing");
}

void append_figures(std::vector<std::pair<std::string, double>>& metrics, const Loss& loss,
                    const std::vector<std::pair<std::string, double>>& means, const std::string& prefix) {
  LossMeans named(means.begin(), means.end());
  if (!means.empty()) loss.conclude(named);
  for (const auto& entry : means) metrics.emplace_back(prefix + entry.first, named.at(entry.first));
}

const Loss& loss_of(const ForwardContext& context) { return context.loss ? *context.loss : cross_entropy_loss(); }

const at::Tensor& named_tensor(const Batch& batch, const std::string& name) {
  const auto found = batch.named.find(name);
  if (found == batch.named.end()) throw Error("a batch has no tensor named " + name + ", which its loss needs");
  return found->second;
}

at::Tensor token_share(const Batch& batch) { return named_tensor(batch, token_share_name).select(1, 0); }

at::Tensor weights_of(const LossChunk& chunk) {
  const at::Tensor &tokens = chunk.batch.token_weights, &rows = chunk.batch.row_weights;
  if (!tokens.defined() && !rows.defined()) return {};
  if (!rows.defined()) return chunk.select(tokens);
  const at::Tensor spread = rows.unsqueeze(1).expand(chunk.batch.targets.sizes());
  return chunk.select(tokens.defined() ? tokens * spread : spread);
}

}  // namespace zero
