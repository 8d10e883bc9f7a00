#include "models/ops/head_rows.h"

#include <ATen/ATen.h>

#include "models/ops/backends.h"
#include "models/ops/matrix_product.h"
#include "models/unit.h"

namespace zero {

at::Tensor composed::trained_rows(const at::Tensor&, const at::Tensor& targets, bool) {
  const at::Tensor trained = targets != ignored_target;
  return trained.all().item<bool>() ? at::Tensor() : trained.nonzero().squeeze(1);
}

at::Tensor meta::trained_rows(const at::Tensor&, const at::Tensor& targets, bool some_on_meta) {
  const at::Tensor trained = targets != ignored_target;  // counts in the peak, as in a real run
  return some_on_meta ? at::empty_like(targets) : at::Tensor();
}

std::vector<std::int64_t> composed::logits_chunks(const at::Tensor& rows, std::int64_t row_bytes, std::int64_t most) {
  const std::int64_t all = rows.size(0), chunk = logits_chunk_rows(all, row_bytes, most ? most : default_logits_bytes);
  std::vector<std::int64_t> chunks;
  for (std::int64_t begin = 0; begin < all; begin += chunk)
    chunks.insert(chunks.end(), {begin, std::min(begin + chunk, all)});
  return chunks;
}

std::vector<std::int64_t> meta::logits_chunks(const at::Tensor& rows, std::int64_t row_bytes, std::int64_t most) {
  std::vector<std::int64_t> chunks = composed::logits_chunks(rows, row_bytes, most);
  if (chunks.size() > 6) chunks.erase(chunks.begin() + 4, chunks.end() - 2);
  return chunks;
}

void composed::add_product_(const at::Tensor& sum, const at::Tensor& a, const at::Tensor& b) {
  at::Tensor into = sum;
  zero::matrix_product_into(into, a.t(), b, true);
}

}  // namespace zero
