#pragma once
// KvCache: the keys and values of all tokens so far, for generation. Every pass appends one column per input token to
// all rows at once. Prompts of different lengths are padded on either side with document -1 in Batch::documents. Such
// columns stay in the cache, and no token attends to them. Batch::positions gives each token its own position. A row
// counts on from its own length: the next token of a row with n real tokens has position n.
#include <ATen/core/Tensor.h>

#include <vector>

#include "models/unit.h"

namespace zero {

class KvCache {
 public:
  /// Room for `capacity` columns. The first pass allocates it.
  KvCache(std::int64_t layers, std::int64_t capacity);

  /// The first unit of the chain calls it: makes room for the batch's columns. Throws InputError if they do not fit.
  void begin_pass(const Batch& batch);

  struct KeysValues {
    at::Tensor k;  // [B, kv_heads, columns so far, head_dim]
    at::Tensor v;
  };
  /// A block calls it in its turn: writes the pass's keys and values [B, T, kv_heads, head_dim] and returns all so far.
  KeysValues append(std::int64_t layer, const at::Tensor& k, const at::Tensor& v);

  /// The mask of columns that the pass's tokens attend to: [B, 1, T, columns so far] bool. A window (0: none) leaves
  /// the nearest positions. Undefined if they attend to all (one token a row and no padding).
  at::Tensor mask(std::int64_t window = 0) const;

  std::int64_t length() const { return end_; }  // columns so far
  std::int64_t capacity() const { return capacity_; }

  /// Forgets the columns from `length` on.
  void rewind(std::int64_t length);

 private:
  std::int64_t capacity_;
  std::int64_t begin_ = 0, end_ = 0;  // the columns of the current pass
  at::Tensor documents_;              // [B, capacity] int32
  at::Tensor positions_;              // [B, capacity] int64
  bool one_document_ = true;          // no row has padding or several documents
  std::vector<KeysValues> layers_;    // [B, kv_heads, capacity, head_dim]
};

}  // namespace zero
