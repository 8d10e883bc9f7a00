#include "models/ops/rotary.h"

#include <ATen/ATen.h>
#include <ATen/OpMathType.h>

#include <algorithm>
#include <numbers>

namespace zero {

Rotary::Rotary(std::int64_t head_dim, double theta, std::optional<Llama3Scaling> scaling)
    : head_dim_(head_dim), theta_(theta), scaling_(scaling) {}

// transformers' _compute_llama3_parameters: wavelengths beyond the old context are stretched by `factor`, those far
// below it stay, those between are blended.
at::Tensor Rotary::frequencies(at::ScalarType precise) const {
  const at::Tensor exponent = at::arange(0, head_dim_, 2, at::kLong).to(precise) / head_dim_;
  const at::Tensor plain = at::pow(at::Scalar(theta_), exponent).reciprocal();
  if (!scaling_) return plain;
  const double old_context = static_cast<double>(scaling_->original_max_position_embeddings);
  const double low_wavelength = old_context / scaling_->low_freq_factor,
               high_wavelength = old_context / scaling_->high_freq_factor;
  const at::Tensor wavelength = 2 * std::numbers::pi / plain;
  const at::Tensor stretched = at::where(wavelength > low_wavelength, plain / scaling_->factor, plain);
  const at::Tensor smooth =
      (old_context / wavelength - scaling_->low_freq_factor) / (scaling_->high_freq_factor - scaling_->low_freq_factor);
  const at::Tensor blended = (1 - smooth) * stretched / scaling_->factor + smooth * stretched;
  const at::Tensor medium = (wavelength >= high_wavelength).logical_and(wavelength <= low_wavelength);
  return at::where(medium, blended, stretched);
}

Rotary::Table Rotary::table(std::int64_t length, at::ScalarType type, at::Device device) {
  const at::ScalarType precise = at::toOpMathType(type);
  const bool kind = kept_.cos.defined() && kept_.cos.scalar_type() == precise && kept_.cos.device() == device;
  if (!kind || kept_.cos.size(0) < length) {
    const std::int64_t rows = kind ? std::max(length, 2 * kept_.cos.size(0)) : length;
    const auto place = at::TensorOptions().dtype(at::kLong).device(device.is_meta() ? at::kMeta : at::kCPU);
    const at::Tensor turns = frequencies(precise).to(place.device());
    const at::Tensor angles = at::arange(rows, place).to(precise).unsqueeze(1) * turns;
    kept_ = {angles.cos().to(device), angles.sin().to(device)};
  }
  return kept_;
}

at::Tensor rotate(const at::Tensor& x, const Rotary::Table& table, const at::Tensor& positions) {
  const auto rows = [&](const at::Tensor& t) {
    return positions.defined() ? t.index({positions}).unsqueeze(2) : t.narrow(0, 0, x.size(1)).unsqueeze(1);
  };
  const at::Tensor cos = rows(table.cos), sin = rows(table.sin);
  const auto halves = x.to(cos.scalar_type()).chunk(2, -1);
  return at::cat({halves[0] * cos - halves[1] * sin, halves[1] * cos + halves[0] * sin}, -1).to(x.scalar_type());
}

}  // namespace zero
