#pragma once
// KvCache: the keys and values of all tokens so far, for generation. Every pass appends one column per input token to
// all rows at once. Prompts of different lengths are padded on either side, with document -1 in Batch::documents.
// Padding columns stay in the cache, but no token attends to them. Batch::positions gives each token's position in its
// row, not counting padding. After n real tokens, the next token has position n.
#include <ATen/core/Tensor.h>

#include <map>
#include <vector>

#include "models/unit.h"

namespace zero {

class KvCache {
 public:
  /// The cache has room for `capacity` columns. The first pass allocates them.
  KvCache(std::int64_t layers, std::int64_t capacity);

  /// Called by the chain's first unit. Makes room for the batch's columns. Throws InputError if they do not fit.
  void begin_pass(const Batch& batch);

  struct KeysValues {
    at::Tensor k;  // [B, kv_heads, columns so far, head_dim]
    at::Tensor v;
  };
  /// Called by each block. Writes the pass's keys and values [B, T, kv_heads, head_dim] and returns all keys and values
  /// so far.
  KeysValues append(std::int64_t layer, const at::Tensor& k, const at::Tensor& v);

  /// The mask of the columns to which the pass's tokens attend: [B, 1, T, columns so far] bool. With a `window` (0:
  /// none) only the nearest positions count. Undefined if the tokens attend to all columns (one token per row and no
  /// padding). Made once for all layers of a pass.
  const at::Tensor& mask(std::int64_t window = 0);

  std::int64_t length() const { return end_; }  // columns so far
  std::int64_t capacity() const { return capacity_; }

  /// Drops all columns after the first `length`.
  void rewind(std::int64_t length);

 private:
  at::Tensor make_mask(std::int64_t window) const;

  std::int64_t capacity_;
  std::int64_t begin_ = 0, end_ = 0;          // the columns of the current pass
  at::Tensor documents_;                      // [B, capacity] int32
  at::Tensor positions_;                      // [B, capacity] int64
  bool one_document_ = true;                  // no row has padding or several documents
  std::vector<KeysValues> layers_;            // [B, kv_heads, capacity, head_dim]
  std::map<std::int64_t, at::Tensor> masks_;  // of the current pass, by window
};

}  // namespace zero
