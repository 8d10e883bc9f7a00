#include "models/tensor_spec.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace zero {
namespace {

/// The number of elements per index of the dimension that is split.
std::int64_t row_of(const TensorSpec& slice) {
  std::int64_t row = 1;
  for (std::size_t d = std::size_t(slice.cut->dim) + 1; d < slice.shape.size(); ++d) row *= slice.shape[d];
  return row;
}

}  // namespace

std::vector<TensorCut::Window> TensorCut::windows(int rank) const {
  std::vector<Window> found;
  std::int64_t piece = 0;
  for (const std::int64_t size : pieces) {
    const std::int64_t begin = size * rank / place.ranks, end = size * (rank + 1) / place.ranks;
    found.push_back({piece + begin, end - begin});
    piece += size;
  }
  return found;
}

std::int64_t TensorCut::full() const { return std::accumulate(pieces.begin(), pieces.end(), std::int64_t(0)); }

std::int64_t TensorCut::held(int rank) const {
  std::int64_t held = 0;
  for (const Window& window : windows(rank)) held += window.count;
  return held;
}

TensorSpec TensorSpec::full() const {
  TensorSpec whole{name, shape};
  if (cut) whole.shape[std::size_t(cut->dim)] = cut->full();
  return whole;
}

TensorSpec TensorSpec::of_rank(int rank) const {
  TensorSpec other = *this;
  if (!cut) return other;
  other.cut->place.rank = rank;
  other.shape[std::size_t(cut->dim)] = cut->held(rank);
  return other;
}

TensorSpec slice_of(TensorSpec full, int dim, std::vector<std::int64_t> pieces, SlicePlace place) {
  if (place.ranks == 1) return full;
  full.cut = TensorCut{dim, std::move(pieces), place};
  return full.of_rank(place.rank);
}

bool is_cut_between(const TensorSpec& tensor, std::int64_t block) {
  if (!tensor.cut) return true;
  const std::int64_t row = row_of(tensor);
  for (int rank = 0; rank < tensor.cut->place.ranks; ++rank)
    for (const TensorCut::Window& window : tensor.cut->windows(rank))
      if (window.begin * row % block != 0 || window.count * row % block != 0) return false;
  return true;
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string words = "[";
  for (const std::int64_t size : shape) words += (words.size() > 1 ? ", " : "") + std::to_string(size);
  return words + "]";
}

void for_each_run(const TensorSpec& slice, std::int64_t begin, std::int64_t count,
                  const std::function<void(std::int64_t full_begin, std::int64_t done, std::int64_t count)>& visit) {
  if (!slice.cut) return visit(begin, 0, count);
  const TensorCut& cut = *slice.cut;
  const std::int64_t row = row_of(slice), held = cut.held(cut.place.rank) * row, full = cut.full() * row;
  const std::vector<TensorCut::Window> windows = cut.windows(cut.place.rank);
  for (std::int64_t done = 0; done < count;) {
    const std::int64_t outer = (begin + done) / held;
    std::int64_t inside = (begin + done) % held;
    auto window = windows.begin();
    for (; inside >= window->count * row; ++window) inside -= window->count * row;
    const std::int64_t run = std::min(window->count * row - inside, count - done);
    visit(outer * full + window->begin * row + inside, done, run);
    done += run;
  }
}

void for_each_slice_run(
    const TensorSpec& slice, std::int64_t begin, std::int64_t count,
    const std::function<void(int rank, std::int64_t slice_begin, std::int64_t done, std::int64_t count)>& visit) {
  if (!slice.cut) return visit(0, begin, 0, count);
  const TensorCut& cut = *slice.cut;
  const std::int64_t row = row_of(slice), full = cut.full() * row;
  for (std::int64_t done = 0; done < count;) {
    const std::int64_t outer = (begin + done) / full, inside = (begin + done) % full;
    std::int64_t index = inside / row;  // along the dimension, then in the piece
    std::size_t piece = 0;
    for (; index >= cut.pieces[piece]; ++piece) index -= cut.pieces[piece];
    const std::int64_t size = cut.pieces[piece];
    const int rank = int(((index + 1) * cut.place.ranks - 1) / size);  // the last one that begins at or before it
    const std::vector<TensorCut::Window> windows = cut.windows(rank);
    std::int64_t before = 0;  // elements along the dimension in the rank's former windows
    for (std::size_t p = 0; p < piece; ++p) before += windows[p].count;
    const std::int64_t first = size * rank / cut.place.ranks, end = first + windows[piece].count;
    const std::int64_t run = std::min((end - index) * row - inside % row, count - done);
    visit(rank, (outer * cut.held(rank) + before + index - first) * row + inside % row, done, run);
    done += run;
  }
}

}  // namespace zero
