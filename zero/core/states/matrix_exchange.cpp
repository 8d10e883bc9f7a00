#include "zero/core/states/matrix_exchange.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <numeric>
#include <span>

namespace zero {
namespace {

constexpr std::int64_t elements_at_a_time = 8 << 20;  // in flight to one owner

/// The elements of a matrix that one rank holds: [begin, begin + count) of the flattened tensor or slice.
struct Share {
  TensorSpec slice;
  std::int64_t begin = 0, count = 0;
};

/// A matrix, and the elements of it that each rank holds.
struct Matrix {
  std::vector<std::int64_t> shape;
  at::Tensor own;             // flat, this rank's part, as the update reads it
  std::vector<Share> shares;  // by rank
  int owner = 0;

  std::int64_t numel() const { return shape[0] * shape[1]; }
  double cost() const { return double(numel()) * double(std::min(shape[0], shape[1])); }
};

std::int64_t overlap(std::int64_t a, std::int64_t a_end, std::int64_t b, std::int64_t b_end) {
  return std::max<std::int64_t>(0, std::min(a_end, b_end) - std::max(a, b));
}

/// Returns the share of rank `rank` of `ranks.sharing`. `layout`: that rank's layout; `cut`: true for slices.
Share share_of(const FlatLayout& layout, bool cut, const StateTensor& state, const ExchangeRanks& ranks, int rank) {
  const FlatTensor& tensor = layout.tensors()[std::size_t(state.tensor)];
  if (ranks.gradients == Placement::resident) return {tensor.spec, 0, tensor.spec.numel()};
  const int shard = cut ? rank / ranks.slices : rank;
  const std::int64_t begin = tensor.offset, first = layout.shard_begin(shard);
  const std::int64_t count = overlap(begin, begin + tensor.spec.numel(), first, first + layout.shard_numel());
  return {tensor.spec, std::max<std::int64_t>(0, first - begin), count};
}

void add_matrices(const Optimizer& optimizer, ParameterGroup& group, const ExchangeRanks& ranks,
                  std::vector<Matrix>& matrices) {
  const bool cut = group.spec().cut;
  std::vector<FlatLayout> layouts;  // by rank of the tensor axis
  for (int slice = 0; slice < ranks.slices; ++slice)
    layouts.push_back(cut ? group.layout().of_rank(slice) : group.layout());
  for (const auto& shard : group.states()) {
    if (&shard->optimizer() != &optimizer) continue;
    for (const StateTensor& state : shard->layout().tensors()) {
      const FlatTensor& tensor = group.layout().tensors()[std::size_t(state.tensor)];
      Matrix matrix{tensor.spec.full().shape, {}, {}, 0};
      for (int r = 0; r < ranks.sharing.size(); ++r)
        matrix.shares.push_back(share_of(layouts[std::size_t(r % ranks.slices)], cut, state, ranks, r));
      const std::int64_t own = matrix.shares[std::size_t(ranks.sharing.rank())].count;
      const std::int64_t first = own ? std::max(tensor.offset, group.own().begin) - group.own().begin : 0;
      matrix.own = group.update_gradient().narrow(0, first, own);
      matrices.push_back(std::move(matrix));
    }
  }
}

/// Assigns the costliest matrix first, each to the rank with the least work. Adjacent matrices in the new order have
/// different owners.
void choose_owners(std::vector<Matrix>& matrices, int ranks) {
  std::stable_sort(matrices.begin(), matrices.end(),
                   [](const Matrix& a, const Matrix& b) { return a.cost() > b.cost(); });
  std::vector<double> load(std::size_t(ranks), 0);
  for (Matrix& matrix : matrices) {
    matrix.owner = int(std::min_element(load.begin(), load.end()) - load.begin());
    load[std::size_t(matrix.owner)] += matrix.cost();
  }
}

void put_back(const at::Tensor& flat, const at::Tensor& home) {
  if (!flat.is_same(home)) home.copy_(flat);
}

void transform_here(const Optimizer& optimizer, const Matrix& matrix, at::Device device) {
  const at::Tensor values = matrix.own.to(device);
  optimizer.transform(values.view(matrix.shape));
  put_back(values, matrix.own);
}

void broadcast_own(Communicator& ranks, const Matrix& matrix, int root, at::Device device) {
  if (matrix.own.numel() == 0) return;
  const at::Tensor values = matrix.own.to(device);
  ranks.broadcast(values, root, {Phase::optimizer});
  put_back(values, matrix.own);
}

/// Matrices that are in flight together. `out`: data for owners, by owner. `in`: data that an owner receives, by
/// sender.
class Window {
 public:
  Window(std::span<const Matrix> matrices, const ExchangeRanks& ranks)
      : matrices_(matrices),
        ranks_(ranks),
        to_owner_(std::size_t(ranks.sharing.size())),
        from_sender_(std::size_t(ranks.sharing.size())) {
    const auto self = std::size_t(ranks_.sharing.rank());
    for (const Matrix& matrix : matrices_) {
      to_owner_[std::size_t(matrix.owner)] += matrix.shares[self].count;
      if (matrix.owner == ranks_.sharing.rank())
        for (std::size_t r = 0; r < from_sender_.size(); ++r) from_sender_[r] += matrix.shares[r].count;
    }
    const at::TensorOptions options = matrices_.front().own.options().device(ranks_.device);
    out_ = at::empty({std::accumulate(to_owner_.begin(), to_owner_.end(), std::int64_t{0})}, options);
    in_ = at::empty({std::accumulate(from_sender_.begin(), from_sender_.end(), std::int64_t{0})}, options);
  }

  void run(const Optimizer& optimizer) {
    for_each_part([](const at::Tensor& part, const at::Tensor& own) { part.copy_(own); });
    ranks_.sharing.all_to_all(in_, from_sender_, out_, to_owner_, {Phase::optimizer});
    transform_owned(optimizer);
    ranks_.sharing.all_to_all(out_, to_owner_, in_, from_sender_, {Phase::optimizer});
    for_each_part([](const at::Tensor& part, const at::Tensor& own) { own.copy_(part); });
  }

 private:
  /// Calls visit(position in the data for the owner, the part as the update reads it) for every matrix.
  template <class Visit>
  void for_each_part(const Visit& visit) const {
    std::int64_t done = 0;
    for (int owner = 0; owner < ranks_.sharing.size(); ++owner)
      for (const Matrix& matrix : matrices_) {
        if (matrix.owner != owner) continue;
        visit(out_.narrow(0, done, matrix.own.numel()), matrix.own);
        done += matrix.own.numel();
      }
  }

  void transform_owned(const Optimizer& optimizer) const {
    std::vector<std::int64_t> next(from_sender_.size());  // position in `in`, by sender
    std::exclusive_scan(from_sender_.begin(), from_sender_.end(), next.begin(), std::int64_t{0});
    for (const Matrix& matrix : matrices_) {
      if (matrix.owner != ranks_.sharing.rank()) continue;
      std::vector<at::Tensor> parts;
      for (std::size_t r = 0; r < next.size(); ++r) {
        parts.push_back(in_.narrow(0, next[r], matrix.shares[r].count));
        next[r] += matrix.shares[r].count;
      }
      const at::Tensor whole = at::empty({matrix.numel()}, in_.options());
      for_each_run_of(matrix, parts, [&](std::int64_t begin, const at::Tensor& run) {
        whole.narrow(0, begin, run.numel()).copy_(run);
      });
      optimizer.transform(whole.view(matrix.shape));
      for_each_run_of(matrix, parts, [&](std::int64_t begin, const at::Tensor& run) {
        run.copy_(whole.narrow(0, begin, run.numel()));
      });
    }
  }

  /// Calls visit(first element in the matrix, contiguous elements of a sender's part).
  template <class Visit>
  static void for_each_run_of(const Matrix& matrix, const std::vector<at::Tensor>& parts, const Visit& visit) {
    for (std::size_t r = 0; r < parts.size(); ++r) {
      const Share& share = matrix.shares[r];
      if (share.count == 0) continue;
      for_each_run(share.slice, share.begin, share.count,
                   [&](std::int64_t full_begin, std::int64_t done, std::int64_t count) {
                     visit(full_begin, parts[r].narrow(0, done, count));
                   });
    }
  }

  std::span<const Matrix> matrices_;
  ExchangeRanks ranks_;
  std::vector<std::int64_t> to_owner_, from_sender_;
  at::Tensor out_, in_;
};

/// Every rank has all matrices. Owners transform theirs, all at the same time, and send the results to the others.
void transform_whole(const Optimizer& optimizer, const std::vector<Matrix>& matrices, const ExchangeRanks& ranks) {
  for (const Matrix& matrix : matrices)
    if (matrix.owner == ranks.sharing.rank()) transform_here(optimizer, matrix, ranks.device);
  if (ranks.sharing.size() == 1) return;
  for (const Matrix& matrix : matrices) broadcast_own(ranks.sharing, matrix, matrix.owner, ranks.device);
}

/// Calls visit(the matrices of a window) for each window.
void for_each_window(const std::vector<Matrix>& matrices, int ranks,
                     const std::function<void(std::span<const Matrix>)>& visit) {
  std::vector<std::int64_t> coming(static_cast<std::size_t>(ranks));  // elements in a window, by owner
  for (std::size_t begin = 0, end = 0; begin < matrices.size(); begin = end) {
    std::fill(coming.begin(), coming.end(), 0);
    for (; end < matrices.size(); ++end) {
      std::int64_t& owners = coming[std::size_t(matrices[end].owner)];
      if (owners > 0 && owners + matrices[end].numel() > elements_at_a_time) break;
      owners += matrices[end].numel();
    }
    visit({matrices.data() + begin, end - begin});
  }
}

std::vector<Matrix> matrices_of(const Optimizer& optimizer, const std::vector<ParameterGroup*>& groups,
                                const ExchangeRanks& ranks) {
  std::vector<Matrix> matrices;
  for (ParameterGroup* group : groups) add_matrices(optimizer, *group, ranks, matrices);
  choose_owners(matrices, ranks.sharing.size());
  return matrices;
}

bool holds_whole(const ExchangeRanks& ranks) {
  return ranks.slices == 1 && (ranks.gradients == Placement::resident || ranks.sharing.size() == 1);
}

}  // namespace

std::int64_t transform_bytes(const Optimizer& optimizer, const std::vector<ParameterGroup*>& groups,
                             const ExchangeRanks& ranks,
                             const std::function<std::int64_t(const std::vector<std::int64_t>& shape)>& bytes_of) {
  const std::vector<Matrix> matrices = matrices_of(optimizer, groups, ranks);
  std::int64_t most = 0;
  if (holds_whole(ranks)) {
    for (const Matrix& matrix : matrices) most = std::max(most, bytes_of(matrix.shape));
    return most;
  }
  for_each_window(matrices, ranks.sharing.size(), [&](std::span<const Matrix> window) {
    const auto bytes = std::int64_t(window.front().own.element_size());
    for (int rank = 0; rank < ranks.sharing.size(); ++rank) {
      std::int64_t moving = 0, largest = 0;  // elements sent and received, and the largest assembled matrix
      for (const Matrix& matrix : window) {
        moving += matrix.shares[std::size_t(rank)].count * bytes;
        if (matrix.owner != rank) continue;
        moving += matrix.numel() * bytes;
        largest = std::max(largest, matrix.numel() * bytes + bytes_of(matrix.shape));
      }
      most = std::max(most, moving + largest);
    }
  });
  return most;
}

void transform_matrices(const Optimizer& optimizer, const std::vector<ParameterGroup*>& groups,
                        const ExchangeRanks& ranks) {
  const std::vector<Matrix> matrices = matrices_of(optimizer, groups, ranks);
  if (holds_whole(ranks))
    transform_whole(optimizer, matrices, ranks);
  else
    for_each_window(matrices, ranks.sharing.size(),
                    [&](std::span<const Matrix> window) { Window(window, ranks).run(optimizer); });
  if (ranks.replicas.size() == 1) return;
  for (const Matrix& matrix : matrices) broadcast_own(ranks.replicas, matrix, 0, ranks.device);
}

}  // namespace zero
