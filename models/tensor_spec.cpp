#include "models/tensor_spec.h"

#include <algorithm>

namespace zero {

TensorSpec TensorSpec::full() const {
  TensorSpec whole{name, shape};
  if (cut) whole.shape[std::size_t(cut->dim)] = cut->full;
  return whole;
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string words = "[";
  for (const std::int64_t size : shape) words += (words.size() > 1 ? ", " : "") + std::to_string(size);
  return words + "]";
}

void for_each_run(const TensorSpec& slice, std::int64_t begin, std::int64_t count,
                  const std::function<void(std::int64_t full_begin, std::int64_t done, std::int64_t count)>& visit) {
  if (!slice.cut) return visit(begin, 0, count);
  std::int64_t row = 1;  // elements per index of the dimension that is cut
  for (std::size_t d = std::size_t(slice.cut->dim) + 1; d < slice.shape.size(); ++d) row *= slice.shape[d];
  const std::int64_t held = slice.shape[std::size_t(slice.cut->dim)] * row, full = slice.cut->full * row;
  for (std::int64_t done = 0; done < count;) {
    const std::int64_t at = begin + done, inside = at % held, run = std::min(held - inside, count - done);
    visit(at / held * full + slice.cut->begin * row + inside, done, run);
    done += run;
  }
}

}  // namespace zero
