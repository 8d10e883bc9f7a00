#include "models/decoder/dropout_place.h"

#include "base/hash.h"
#include "models/parallel/token_split.h"

namespace zero {

Dropout dropout_of(const ForwardContext& context, double share, std::uint64_t seed) {
  Dropout dropout;
  dropout.share = context.training ? share : 0.0;
  dropout.seed = context.seed ^ seed;
  dropout.first_sample = context.first_sample;
  return dropout;
}

DropoutPlace::DropoutPlace(double share, std::string_view name) : share_(share), seed_(fnv1a(name)) {}

at::Tensor DropoutPlace::drop(const at::Tensor& x, const ForwardContext& context) const {
  if (!drops(context)) return x;
  Dropout dropout = dropout_of(context, share_, seed_);
  const TokenSplit split(context);
  const std::int64_t row_length = context.tile.row_length > 0 ? context.tile.row_length : x.size(1);
  dropout.first_row = split.own_first() + context.tile.first;
  dropout.sequence = split.any() ? split.length() : row_length;
  return zero::drop(x, dropout);
}

HeadDropout DropoutPlace::of_heads(const ForwardContext& context, std::int64_t first_head) const {
  const Dropout dropout = dropout_of(context, share_, seed_);
  return {dropout.share, dropout.seed, dropout.first_sample, first_head};
}

}  // namespace zero
