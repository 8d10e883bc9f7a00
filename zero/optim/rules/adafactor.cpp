// Adafactor (Shazeer and Stern 2018), as in torch.optim.Adafactor. A tensor with two or more dimensions is a stack of
// matrices of its last two dimensions. The second moment of each matrix is kept as the means of its rows and columns,
// that of a vector or a scalar in full. Steps are relative to the tensor's RMS and clipped by their own RMS.
//
// Pass 0 sums the squares of gradients by row and column, and those of weights. Pass 1 sums the squares of steps, and
// pass 2 takes the steps.
#include <ATen/ATen.h>

#include <cmath>
#include <functional>
#include <limits>
#include <optional>

#include "zero/optim/rules/adafactor_loops.h"
#include "zero/optim/rules/composed.h"

namespace zero {
namespace {

// LibTorch's operations take many smaller matrices at once.
constexpr std::int64_t smallest_matrix = 4096;

constexpr double smallest_scale = 1e-3, clip_threshold = 1.0, beta2_decay = -0.8;

bool is_factored(const std::vector<std::int64_t>& shape) { return shape.size() >= 2; }

/// A tensor as matrices of one size. A vector is one row, and a scalar is one element.
struct Matrices {
  std::int64_t count = 1, rows = 1, cols = 1;

  explicit Matrices(const std::vector<std::int64_t>& shape) {
    const std::size_t dims = shape.size();
    if (dims >= 1) cols = shape[dims - 1];
    if (dims >= 2) rows = shape[dims - 2];
    for (std::size_t d = 0; d + 2 < dims; ++d) count *= shape[d];
  }
  std::int64_t numel() const { return count * rows * cols; }
};

/// A part of a tensor's matrices that is contiguous in a flat span: several matrices, some rows of one matrix, or a
/// part of a row.
struct Block {
  std::int64_t offset;            // in the span
  std::int64_t matrix, row, col;  // of the first element; the row is counted in its matrix
  std::int64_t matrices = 1, rows = 1, cols = 1;

  std::int64_t numel() const { return matrices * rows * cols; }
  /// Returns this block of the span as [matrices, rows, cols].
  at::Tensor of(const at::Tensor& span) const { return span.narrow(0, offset, numel()).view({matrices, rows, cols}); }
  /// These select this block's values from those of the full tensor: [matrices, rows] with a value per row, [matrices,
  /// cols] with a value per column.
  at::Tensor of_rows(const at::Tensor& all, const Matrices& tensor) const {
    return all.narrow(0, matrix * tensor.rows + row, matrices * rows).view({matrices, rows});
  }
  at::Tensor of_cols(const at::Tensor& all, const Matrices& tensor) const {
    return all.view({tensor.count, tensor.cols}).narrow(0, matrix, matrices).narrow(1, col, cols);
  }
};

/// Calls `visit` for blocks that are as large as possible, starting at the span's first element.
void for_each_block(const UpdateSpan& span, const Matrices& tensor, const std::function<void(const Block&)>& visit) {
  const std::int64_t size = tensor.rows * tensor.cols, n = span.master.numel();
  for (std::int64_t done = 0; done < n;) {
    const std::int64_t at = span.begin + done, inside = at % size, left = n - done;
    Block block{done, at / size, inside / tensor.cols, inside % tensor.cols};
    block.cols = std::min(tensor.cols - block.col, left);
    if (block.col == 0 && left >= tensor.cols) block.rows = std::min(tensor.rows - block.row, left / tensor.cols);
    if (inside == 0 && left >= size) block.matrices = left / size;
    visit(block);
    done += block.numel();
  }
}

std::int64_t moments_of(const std::vector<std::int64_t>& shape) {
  const Matrices m(shape);
  return is_factored(shape) ? m.count * (m.rows + m.cols) : m.cols;
}

/// A tensor's statistics: its moments, by row and column or by element, and for one step its scale and the mean of each
/// matrix's rows.
struct Kept {
  at::Tensor rows, cols, scale, means;

  Kept(const at::Tensor& kept, const std::vector<std::int64_t>& shape) {
    const Matrices m(shape);
    const std::int64_t n = is_factored(shape) ? m.count * m.rows : 0, moments = moments_of(shape);
    rows = kept.narrow(0, 0, n);
    cols = kept.narrow(0, n, moments - n);
    scale = kept.select(0, moments);
    means = kept.narrow(0, moments + 1, m.count);
  }
};

class Adafactor final : public ComposedOptimizer {
 public:
  using ComposedOptimizer::ComposedOptimizer;

  // Moments of vectors are statistics too, since they are small.
  std::vector<StateSpec> states(at::ScalarType) const override { return {}; }
  std::vector<StatisticSpec> statistics(const std::vector<std::int64_t>& shape) const override {
    const Matrices m(shape);
    const StatisticSpec of_step{"", 1 + m.count};
    if (!is_factored(shape)) return {{"variance", m.cols}, of_step};
    return {{"row_var", m.count * m.rows}, {"col_var", m.count * m.cols}, of_step};
  }
  std::int64_t sums(const std::vector<std::int64_t>& shape) const override { return moments_of(shape) + 1; }

  int passes() const override { return 3; }
  bool writes_states(int pass) const override { return pass == 2; }
  void update(const UpdateSpan& span, const UpdateContext& context) const override;
  void conclude(const UpdateContext& context) const override;

 private:
  static bool update_by_loops(const UpdateSpan& span, const UpdateContext& context);
  static void add_squares(const UpdateSpan& span, const UpdateContext& context);
  static at::Tensor step_of(const UpdateSpan& span, const UpdateContext& context);
  static void keep_moments(const at::Tensor& sums, const Matrices& m, double weight, const Kept& kept);
};

/// Steps of weights in pass 2: master = keep * master - rate * step.
struct Steps {
  double keep, rate;

  Steps(const UpdateContext& context, const at::Tensor& scale)
      : keep(1 - context.lr * context.weight_decay),
        rate(std::min(context.lr, 1 / std::sqrt(double(context.step))) * scale.item<double>()) {}
};

/// The inverse roots of a block's second moments, in fp32.
class RootsOfMoments {
 public:
  RootsOfMoments(const Block& block, const Kept& kept, const Matrices& tensor, bool factored) : block_(block) {
    const auto inverse_root = [](const at::Tensor& moments) { return moments.rsqrt().to(at::kFloat).contiguous(); };
    cols_ = inverse_root(block.of_cols(kept.cols, tensor));
    if (!factored) {
      rows_ = at::ones({1, 1});
      return;
    }
    const at::Tensor means = kept.means.narrow(0, block.matrix, block.matrices).clamp_min(eps).unsqueeze(1);
    rows_ = inverse_root(block.of_rows(kept.rows, tensor) / means);
  }
  /// Those of a matrix of the block.
  InverseRoots of(std::int64_t matrix) const {
    return {rows_.const_data_ptr<float>() + matrix * block_.rows, cols_.const_data_ptr<float>() + matrix * block_.cols,
            static_cast<float>(1 / eps)};
  }

 private:
  static constexpr double eps = std::numeric_limits<float>::epsilon();
  const Block& block_;
  at::Tensor rows_, cols_;
};

/// Calls f for every matrix of a block.
template <class F>
void for_each_matrix(const Block& block, const F& f) {
  for (std::int64_t m = 0; m < block.matrices; ++m)
    f(m, MatrixRows{block.offset + m * block.rows * block.cols, block.rows, block.cols});
}

void Adafactor::update(const UpdateSpan& span, const UpdateContext& context) const {
  if (update_by_loops(span, context)) return;
  if (context.pass == 0) return add_squares(span, context);
  const at::Tensor step = step_of(span, context);
  const auto& shape = context.statistics->shape(span.tensor);
  if (context.pass == 1) {
    const at::Tensor sums = context.statistics->sums(span.tensor);
    sums[moments_of(shape)] += ordered_sum(step.square());
    return;
  }
  const double rate = std::min(context.lr, 1 / std::sqrt(double(context.step)));
  const at::Tensor scale = Kept(context.statistics->kept(span.tensor), shape).scale;
  span.master.mul_(1 - context.lr * context.weight_decay).sub_(step * (scale * rate));
  write_weights(span);
}

bool Adafactor::update_by_loops(const UpdateSpan& span, const UpdateContext& context) {
  const AdafactorLoops* const loops = adafactor_loops(span);
  const auto& shape = context.statistics->shape(span.tensor);
  const Matrices tensor(shape);
  const bool many_small = tensor.count > 1 && tensor.rows * tensor.cols < smallest_matrix;
  if (!loops || many_small || (context.pass == 0 && !is_factored(shape))) return false;
  const at::Tensor sums = context.statistics->sums(span.tensor);
  double* const by_row = sums.data_ptr<double>();
  double* const by_col = by_row + tensor.count * tensor.rows;
  if (context.pass == 0) {
    sums[moments_of(shape)] += loops->sum_of_squares(span);
    for_each_block(span, tensor, [&](const Block& block) {
      for_each_matrix(block, [&](std::int64_t m, const MatrixRows& rows) {
        loops->add_squares(span, context.gradient_scale, rows, by_row + (block.matrix + m) * tensor.rows + block.row,
                           by_col + (block.matrix + m) * tensor.cols + block.col);
      });
    });
    return true;
  }
  const Kept kept(context.statistics->kept(span.tensor), shape);
  const std::optional<Steps> steps = context.pass == 2 ? std::optional(Steps(context, kept.scale)) : std::nullopt;
  double squares = 0;
  for_each_block(span, tensor, [&](const Block& block) {
    const RootsOfMoments roots(block, kept, tensor, is_factored(shape));
    for_each_matrix(block, [&](std::int64_t m, const MatrixRows& rows) {
      if (steps)
        loops->take_steps(span, context.gradient_scale, rows, roots.of(m), steps->keep, steps->rate);
      else
        squares += loops->sum_of_steps(span, context.gradient_scale, rows, roots.of(m));
    });
  });
  if (!steps) sums[moments_of(shape)] += squares;
  return true;
}

void Adafactor::add_squares(const UpdateSpan& span, const UpdateContext& context) {
  const at::Tensor squares = scaled_gradient(span, context).square_();
  const at::Tensor sums = context.statistics->sums(span.tensor);
  const auto& shape = context.statistics->shape(span.tensor);
  const std::int64_t moments = moments_of(shape);
  sums[moments] += ordered_sum(span.master.square());
  if (!is_factored(shape)) {
    sums.narrow(0, span.begin, squares.numel()) += squares;
    return;
  }
  const Matrices tensor(shape);
  const std::int64_t rows = tensor.count * tensor.rows;
  const at::Tensor by_row = sums.narrow(0, 0, rows), by_col = sums.narrow(0, rows, moments - rows);
  for_each_block(span, tensor, [&](const Block& block) {
    const at::Tensor values = block.of(squares);
    block.of_rows(by_row, tensor) += values.sum(2, false, at::kDouble);
    block.of_cols(by_col, tensor) += values.sum(1, false, at::kDouble);
  });
}

// Returns the unscaled step: the gradient divided by the root of its estimated second moment.
at::Tensor Adafactor::step_of(const UpdateSpan& span, const UpdateContext& context) {
  const auto& shape = context.statistics->shape(span.tensor);
  const Kept kept(context.statistics->kept(span.tensor), shape);
  const at::Tensor step = scaled_gradient(span, context);
  const at::ScalarType type = step.scalar_type();
  const double eps =
      type == at::kDouble ? std::numeric_limits<double>::epsilon() : std::numeric_limits<float>::epsilon();
  const auto root = [&](const at::Tensor& moment) { return moment.clamp_min(eps * eps).rsqrt_().to(type); };
  if (!is_factored(shape)) return step.mul_(root(kept.cols.narrow(0, span.begin, step.numel())));
  const Matrices tensor(shape);
  const at::Tensor means = kept.means.clamp_min(eps);
  for_each_block(span, tensor, [&](const Block& block) {
    const at::Tensor mean = means.narrow(0, block.matrix, block.matrices).unsqueeze(1),
                     rows = block.of_rows(kept.rows, tensor) / mean, cols = block.of_cols(kept.cols, tensor);
    block.of(step).mul_(root(rows.to(type).unsqueeze(2) * cols.to(type).unsqueeze(1)));
  });
  return step;
}

void Adafactor::conclude(const UpdateContext& context) const {
  const Statistics& statistics = *context.statistics;
  for (int t = 0; t < statistics.tensors(); ++t) {
    const auto& shape = statistics.shape(t);
    const Matrices m(shape);
    if (m.numel() == 0) continue;  // there is nothing to average
    const Kept kept(statistics.kept(t), shape);
    const at::Tensor sums = statistics.sums(t);
    const at::Tensor mean_square = sums[moments_of(shape)] / double(m.numel());
    if (context.pass == 0) {
      keep_moments(sums, m, std::pow(double(context.step), beta2_decay), kept);
      kept.scale.copy_(mean_square.sqrt().clamp_min_(smallest_scale));
    } else if (context.pass == 1) {
      kept.scale.div_(mean_square.sqrt().div_(clip_threshold).clamp_min_(1.0));
    }
  }
}

// A single sum over all rows is taken in an order that does not depend on threads. If there are several sums, each is
// taken by one thread.
void Adafactor::keep_moments(const at::Tensor& sums, const Matrices& m, double weight, const Kept& kept) {
  const std::int64_t rows = kept.rows.numel();
  kept.cols.lerp_(sums.narrow(0, rows, kept.cols.numel()) / double(m.rows), weight);
  if (rows == 0) return;
  kept.rows.lerp_(sums.narrow(0, 0, rows) / double(m.cols), weight);
  const at::Tensor totals = m.count == 1 ? ordered_sum(kept.rows).view({1}) : kept.rows.view({m.count, m.rows}).sum(1);
  kept.means.copy_(totals / double(m.rows));
}

}  // namespace

OptimizerRow adafactor_row() {
  return {"adafactor",
          "Adafactor as in torch",
          {},
          {{}, "adafactor"},
          [](const OptimizerOptions& o) -> std::unique_ptr<Optimizer> { return std::make_unique<Adafactor>(o); }};
}

}  // namespace zero
