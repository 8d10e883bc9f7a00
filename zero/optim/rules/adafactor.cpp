// Adafactor (Shazeer and Stern 2018), as torch.optim.Adafactor has it: the second moment of a matrix is kept as the means
// of its rows and columns, that of a vector as it is; steps are relative to the tensor's size and clipped by their own.
//
// Pass 0 sums the squares of gradients by row and column and those of weights, pass 1 the squares of steps, pass 2 takes
// them.
#include <ATen/ATen.h>

#include <cmath>
#include <functional>
#include <limits>

#include "zero/optim/rules/composed.h"

namespace zero {
namespace {

constexpr double smallest_scale = 1e-3, clip_threshold = 1.0, beta2_decay = -0.8;

struct Shape {
  std::int64_t rows, cols;
};

bool is_factored(const std::vector<std::int64_t>& shape) { return shape.size() >= 2; }

Shape matrix_of(const std::vector<std::int64_t>& shape) {
  Shape matrix{1, shape.back()};
  for (std::size_t d = 0; d + 1 < shape.size(); ++d) matrix.rows *= shape[d];
  return matrix;
}

/// A block [rows, cols] of a matrix that lies in one piece in a flat span.
struct Block {
  std::int64_t offset, row, col, rows, cols;

  at::Tensor of(const at::Tensor& span) const { return span.narrow(0, offset, rows * cols).view({rows, cols}); }
};

/// The rest of a row, whole rows, and the beginning of one.
void for_each_block(const TensorPart& part, std::int64_t n, const std::function<void(const Block&)>& visit) {
  const std::int64_t cols = matrix_of(part.shape).cols;
  for (std::int64_t done = 0; done < n;) {
    const std::int64_t at = part.begin + done, col = at % cols, left = n - done;
    const std::int64_t rows = col == 0 && left >= cols ? left / cols : 1;
    const std::int64_t width = std::min(cols - col, left);
    visit({done, at / cols, col, rows, width});
    done += rows * width;
  }
}

std::int64_t moments_of(const std::vector<std::int64_t>& shape) {
  const Shape m = matrix_of(shape);
  return is_factored(shape) ? m.rows + m.cols : m.cols;
}

/// A tensor's statistics: moments, of a matrix by row and by column, of a vector by element; then, of one step, its scale
/// and the mean of the rows.
struct Kept {
  at::Tensor rows, cols, scale, mean;

  Kept(const at::Tensor& kept, const std::vector<std::int64_t>& shape) {
    const std::int64_t n = is_factored(shape) ? matrix_of(shape).rows : 0, moments = moments_of(shape);
    rows = kept.narrow(0, 0, n);
    cols = kept.narrow(0, n, moments - n);
    scale = kept.select(0, moments);
    mean = kept.select(0, moments + 1);
  }
};

class Adafactor final : public ComposedOptimizer {
 public:
  using ComposedOptimizer::ComposedOptimizer;

  // Vectors' moments are statistics too: there are few.
  std::vector<StateSpec> states(at::ScalarType) const override { return {}; }
  std::vector<StatisticSpec> statistics(const std::vector<std::int64_t>& shape) const override {
    const Shape m = matrix_of(shape);
    if (!is_factored(shape)) return {{"variance", m.cols}, {"", 2}};
    return {{"row_var", m.rows}, {"col_var", m.cols}, {"", 2}};
  }
  std::int64_t sums(const std::vector<std::int64_t>& shape) const override { return moments_of(shape) + 1; }

  int passes() const override { return 3; }
  bool writes_states(int pass) const override { return pass == 2; }
  void update(const UpdateSpan& span, const UpdateContext& context) const override;
  void conclude(int pass, const StepFactors& factors, Statistics& statistics) const override;

 private:
  static void add_squares(const UpdateSpan& span, const UpdateContext& context);
  static at::Tensor step_of(const UpdateSpan& span, const UpdateContext& context);
};

void Adafactor::update(const UpdateSpan& span, const UpdateContext& context) const {
  if (context.pass == 0) return add_squares(span, context);
  const at::Tensor step = step_of(span, context);
  const at::Tensor sums = context.statistics->sums(context.part.tensor);
  if (context.pass == 1) {
    sums[moments_of(context.part.shape)] += ordered_sum(step.square());
    return;
  }
  const StepFactors& f = context.factors;
  const double rate = std::min(f.lr, 1 / std::sqrt(double(f.step)));
  const at::Tensor scale = Kept(context.statistics->kept(context.part.tensor), context.part.shape).scale;
  span.master.mul_(1 - f.lr * f.weight_decay).sub_(step * (scale * rate));
  write_weights(span);
}

void Adafactor::add_squares(const UpdateSpan& span, const UpdateContext& context) {
  const at::Tensor squares = scaled_gradient(span, context.factors).square_();
  const at::Tensor sums = context.statistics->sums(context.part.tensor);
  const auto& shape = context.part.shape;
  const std::int64_t moments = moments_of(shape);
  sums[moments] += ordered_sum(span.master.square());
  if (!is_factored(shape)) {
    sums.narrow(0, context.part.begin, squares.numel()) += squares;
    return;
  }
  const std::int64_t rows = matrix_of(shape).rows;
  for_each_block(context.part, squares.numel(), [&](const Block& block) {
    const at::Tensor values = block.of(squares);
    sums.narrow(0, block.row, block.rows) += values.sum(1, false, at::kDouble);
    sums.narrow(0, rows + block.col, block.cols) += values.sum(0, false, at::kDouble);
  });
}

// Before it is scaled: the gradient over the root of its estimated second moment.
at::Tensor Adafactor::step_of(const UpdateSpan& span, const UpdateContext& context) {
  const auto& shape = context.part.shape;
  const Kept kept(context.statistics->kept(context.part.tensor), shape);
  const at::Tensor step = scaled_gradient(span, context.factors);
  const at::ScalarType type = step.scalar_type();
  const double eps =
      type == at::kDouble ? std::numeric_limits<double>::epsilon() : std::numeric_limits<float>::epsilon();
  const auto root = [&](const at::Tensor& moment) { return moment.clamp_min(eps * eps).rsqrt_().to(type); };
  if (!is_factored(shape)) return step.mul_(root(kept.cols.narrow(0, context.part.begin, step.numel())));
  const at::Tensor mean = kept.mean.clamp_min(eps);
  for_each_block(context.part, step.numel(), [&](const Block& block) {
    const at::Tensor rows = kept.rows.narrow(0, block.row, block.rows) / mean,
                     cols = kept.cols.narrow(0, block.col, block.cols);
    block.of(step).mul_(root(rows.to(type).unsqueeze(1) * cols.to(type)));
  });
  return step;
}

void Adafactor::conclude(int pass, const StepFactors& factors, Statistics& statistics) const {
  const double weight = std::pow(double(factors.step), beta2_decay);
  for (int t = 0; t < statistics.tensors(); ++t) {
    const auto& shape = statistics.shape(t);
    const Kept kept(statistics.kept(t), shape);
    const at::Tensor sums = statistics.sums(t);
    const Shape m = matrix_of(shape);
    const double numel = double(m.rows * m.cols);
    const at::Tensor& total = sums[moments_of(shape)];
    if (pass == 0) {
      const std::int64_t rows = kept.rows.numel();
      kept.rows.lerp_(sums.narrow(0, 0, rows) / double(m.cols), weight);
      kept.cols.lerp_(sums.narrow(0, rows, m.cols) / double(rows ? m.rows : 1), weight);
      if (rows) kept.mean.copy_(ordered_sum(kept.rows) / double(rows));
      kept.scale.copy_((total / numel).sqrt_().clamp_min_(smallest_scale));
    } else if (pass == 1) {
      kept.scale.div_((total / numel).sqrt_().div_(clip_threshold).clamp_min_(1.0));
    }
  }
}

}  // namespace

OptimizerRow adafactor_row() {
  return {"adafactor",
          "Adafactor as torch has it",
          {},
          {.name = "adafactor"},
          [](const OptimizerOptions& o) -> std::unique_ptr<Optimizer> { return std::make_unique<Adafactor>(o); }};
}

}  // namespace zero
