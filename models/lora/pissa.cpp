#include "models/lora/pissa.h"

#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/log.h"

namespace zero {

namespace {

const std::string end_of_a = ".lora_A.weight", end_of_b = ".lora_B.weight", end_of_weight = ".weight";

/// Limits everything, libraries too, to one thread during its lifetime if LibTorch is set to deterministic algorithms.
class Alone {
 public:
  Alone() {
    if (at::globalContext().deterministicAlgorithms()) at::set_num_threads(1);
  }
  ~Alone() {
    if (at::get_num_threads() != before_) at::set_num_threads(before_);
  }
  Alone(const Alone&) = delete;
  Alone& operator=(const Alone&) = delete;

 private:
  int before_ = at::get_num_threads();
};

/// Rows [first, first + rows) of a product. Blocks start at fixed rows, whichever rows are requested.
at::Tensor rows_of_product(const at::Tensor& a, const at::Tensor& b, std::int64_t first, std::int64_t rows) {
  constexpr std::int64_t block = 256;
  const Alone product;
  const std::int64_t begin = first / block * block;
  std::vector<at::Tensor> blocks;
  for (std::int64_t row = begin; row < first + rows; row += block)
    blocks.push_back(at::mm(a.narrow(0, row, std::min(block, a.size(0) - row)), b));
  return at::cat(blocks).narrow(0, first - begin, rows);
}

/// The module of an adapter's tensor, without PEFT's prefix; empty for other tensors.
std::string adapted_module(const std::string& name) {
  for (const std::string& end : {end_of_a, end_of_b}) {
    const std::string prefix = peft_prefix;
    if (name.starts_with(prefix) && name.ends_with(end))
      return name.substr(prefix.size(), name.size() - prefix.size() - end.size());
  }
  return "";
}

}  // namespace

void PissaWeights::check(const std::vector<TensorSpec>& tensors) {
  others_->check(tensors);
  for (const TensorSpec& tensor : tensors)
    if (const std::string module = adapted_module(tensor.name); !module.empty()) adapted_[module] = {};
  for (const TensorSpec& tensor : tensors) {
    if (tensor.shape.size() != 2 || !tensor.name.ends_with(end_of_weight)) continue;
    const auto found = adapted_.find(tensor.name.substr(0, tensor.name.size() - end_of_weight.size()));
    if (found == adapted_.end()) continue;
    found->second = tensor;
    if (options_.r > std::min(tensor.shape[0], tensor.shape[1]))
      throw InputError(text(
          "lora.r = ", options_.r, ": init_lora_weights = \"pissa\" takes as many singular vectors of ", tensor.name,
          ", which has ", std::min(tensor.shape[0], tensor.shape[1]), ": choose a smaller r or other target_modules"));
  }
}

void PissaWeights::read(const TensorSpec& tensor, std::int64_t begin, std::int64_t count, const at::Tensor& out) {
  if (const std::string module = adapted_module(tensor.name); !module.empty()) {
    const Factors& factors = factors_of(module);
    out.copy_((tensor.name.ends_with(end_of_a) ? factors.a : factors.b).view({-1}).narrow(0, begin, count));
    return;
  }
  const std::string module = tensor.name.substr(0, tensor.name.rfind(end_of_weight));
  if (!adapted_.contains(module)) return others_->read(tensor, begin, count, out);
  const Factors& factors = factors_of(module);
  const std::int64_t columns = tensor.shape[1], first = begin / columns,
                     rows = (begin + count - 1) / columns - first + 1;
  const at::Tensor weight = at::empty({rows * columns}, at::kFloat);
  others_->read(tensor, first * columns, rows * columns, weight);
  weight.view({rows, columns}).sub_(rows_of_product(factors.b, factors.a, first, rows), options_.scale());
  out.copy_(weight.narrow(0, begin - first * columns, count));
}

const PissaWeights::Factors& PissaWeights::factors_of(const std::string& module) {
  if (const auto found = factors_.find(module); found != factors_.end()) return found->second;
  const TensorSpec& tensor = adapted_.at(module);
  const at::Tensor weight = at::empty({tensor.numel()}, at::kFloat);
  others_->read(tensor, 0, tensor.numel(), weight);
  const Alone decomposition;
  const auto [u, s, v] = at::linalg_svd(weight.view(tensor.shape), /*full_matrices=*/false);
  const at::Tensor root = s.narrow(0, 0, options_.r).div(options_.scale()).sqrt();
  Factors factors{v.narrow(0, 0, options_.r).mul(root.unsqueeze(1)).contiguous(),
                  u.narrow(1, 0, options_.r).mul(root).contiguous()};
  return factors_.emplace(module, std::move(factors)).first->second;
}

at::Tensor PissaWeights::as_plain(const TensorSpec& tensor, const at::Tensor& value) {
  const std::string module = adapted_module(tensor.name);
  if (module.empty()) return value;
  const Factors& start = factors_of(module);
  const at::Tensor trained = value.to(at::kFloat);
  return tensor.name.ends_with(end_of_a) ? at::cat({trained, start.a}, 0) : at::cat({trained, start.b.neg()}, 1);
}

std::vector<std::int64_t> PissaWeights::plain_shape(const TensorSpec& tensor) {
  std::vector<std::int64_t> shape = tensor.shape;
  if (!adapted_module(tensor.name).empty()) shape[tensor.name.ends_with(end_of_a) ? 0 : 1] *= 2;
  return shape;
}

LoraOptions plain_options(LoraOptions options) {
  options.r *= 2;
  options.alpha *= options.use_rslora ? std::sqrt(2.0) : 2.0;
  options.init = LoraInit::kaiming;
  return options;
}

}  // namespace zero
