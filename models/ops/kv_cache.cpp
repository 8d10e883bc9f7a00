#include "models/ops/kv_cache.h"

#include <ATen/ATen.h>

#include "base/error.h"
#include "base/log.h"

namespace zero {

KvCache::KvCache(std::int64_t layers, std::int64_t capacity) : capacity_(capacity), layers_(layers) {}

void KvCache::begin_pass(const Batch& batch) {
  const std::int64_t rows = batch.ids.size(0), columns = batch.ids.size(1);
  if (end_ + columns > capacity_)
    throw InputError(text("the context is full: ", end_, " tokens are kept and ", columns, " more do not fit into ",
                          capacity_, "; shorten the prompt or generate fewer tokens"));
  if (!documents_.defined()) {
    documents_ = at::zeros({rows, capacity_}, batch.ids.options().dtype(at::kInt));
    positions_ = at::zeros({rows, capacity_}, batch.ids.options());
  }
  ZERO_CHECK(documents_.size(0) == rows, "a cache keeps the same number of rows in every pass");
  masks_.clear();
  begin_ = end_;
  end_ += columns;
  positions_.narrow(1, begin_, columns)
      .copy_(batch.positions.defined() ? batch.positions : at::arange(begin_, end_, batch.ids.options()).unsqueeze(0));
  at::Tensor mine = documents_.narrow(1, begin_, columns);
  if (batch.documents.defined()) {
    mine.copy_(batch.documents);
    one_document_ = one_document_ && !mine.any().item<bool>();
  } else {
    mine.zero_();
  }
}

KvCache::KeysValues KvCache::append(std::int64_t layer, const at::Tensor& k, const at::Tensor& v) {
  KeysValues& kept = layers_.at(layer);
  if (!kept.k.defined()) {
    const std::vector<std::int64_t> shape{k.size(0), k.size(2), capacity_, k.size(3)};
    kept = {at::empty(shape, k.options()), at::empty(shape, v.options())};
  }
  ZERO_CHECK(k.size(1) == end_ - begin_, "begin_pass() was not called for this pass");
  kept.k.narrow(2, begin_, k.size(1)).copy_(k.transpose(1, 2));
  kept.v.narrow(2, begin_, v.size(1)).copy_(v.transpose(1, 2));
  return {kept.k.narrow(2, 0, end_), kept.v.narrow(2, 0, end_)};
}

const at::Tensor& KvCache::mask(std::int64_t window) {
  const auto [place, is_new] = masks_.try_emplace(window);
  if (is_new) place->second = make_mask(window);
  return place->second;
}

at::Tensor KvCache::make_mask(std::int64_t window) const {
  const bool all_near = window <= 0 || window >= end_;
  if (one_document_ && end_ - begin_ == 1 && all_near) return {};
  const at::Tensor all = at::arange(end_, documents_.options().dtype(at::kLong));
  const at::Tensor mine = all.narrow(0, begin_, end_ - begin_).unsqueeze(1);
  const at::Tensor causal = (all.unsqueeze(0) <= mine).unsqueeze(0);
  const at::Tensor theirs = documents_.narrow(1, 0, end_).unsqueeze(1);
  const at::Tensor document = documents_.narrow(1, begin_, end_ - begin_).unsqueeze(2);
  at::Tensor same = (document == theirs).logical_and(document >= 0);
  if (!all_near) {
    const at::Tensor place = positions_.narrow(1, begin_, end_ - begin_).unsqueeze(2);
    same = same.logical_and(place - positions_.narrow(1, 0, end_).unsqueeze(1) < window);
  }
  return causal.logical_and(same).logical_or(all.unsqueeze(0) == mine).unsqueeze(1);  // padding attends to itself
}

void KvCache::rewind(std::int64_t length) {
  ZERO_CHECK(length >= 0 && length <= end_, "a cache can only be rewound to an earlier length");
  masks_.clear();
  begin_ = end_ = length;
}

}  // namespace zero
