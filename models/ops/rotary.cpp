#include "models/ops/rotary.h"

#include <ATen/ATen.h>
#include <ATen/OpMathType.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace zero {

namespace {

/// 1 / theta^(2i / turned) for the rotated pairs.
at::Tensor plain_frequencies(double theta, std::int64_t turned, at::ScalarType precise) {
  const at::Tensor exponent = at::arange(0, turned, 2, at::kLong).to(precise) / turned;
  return at::pow(at::Scalar(theta), exponent).reciprocal();
}

// _compute_llama3_parameters: stretches wavelengths beyond the old context by `factor`, keeps those far below it, and
// blends between.
at::Tensor stretched_by(const Llama3Scaling& scaling, const at::Tensor& plain) {
  const double old_context = static_cast<double>(scaling.original_max_position_embeddings);
  const double low_wavelength = old_context / scaling.low_freq_factor,
               high_wavelength = old_context / scaling.high_freq_factor;
  const at::Tensor wavelength = 2 * std::numbers::pi / plain;
  const at::Tensor stretched = at::where(wavelength > low_wavelength, plain / scaling.factor, plain);
  const at::Tensor smooth =
      (old_context / wavelength - scaling.low_freq_factor) / (scaling.high_freq_factor - scaling.low_freq_factor);
  const at::Tensor blended = (1 - smooth) * stretched / scaling.factor + smooth * stretched;
  const at::Tensor medium = (wavelength >= high_wavelength).logical_and(wavelength <= low_wavelength);
  return at::where(medium, blended, stretched);
}

// _compute_yarn_parameters: a ramp over the pairs between those that rotate beta_fast and beta_slow times in the old
// context.
at::Tensor stretched_by(const YarnScaling& scaling, const at::Tensor& plain, double theta) {
  const auto pairs = plain.size(0);
  const double dim = 2.0 * double(pairs), old_context = double(scaling.original_max_position_embeddings);
  const auto place = [&](double turns) {
    return dim * std::log(old_context / (turns * 2 * std::numbers::pi)) / (2 * std::log(theta));
  };
  double low = place(scaling.beta_fast), high = place(scaling.beta_slow);
  if (scaling.truncate) low = std::floor(low), high = std::ceil(high);
  low = std::max(low, 0.0), high = std::min(high, dim - 1);
  if (low == high) high += 0.001;
  const at::Tensor ramp = ((at::arange(pairs, plain.options()) - low) / (high - low)).clamp(0, 1);
  return (plain / scaling.factor) * ramp + plain * (1 - ramp);
}

at::Tensor divided_by(const std::vector<double>& factors, const at::Tensor& plain) {
  return plain / at::tensor(at::ArrayRef<double>(factors), at::kDouble).to(plain.scalar_type());
}

}  // namespace

Rotary::Rotary(std::int64_t head_dim, double theta, std::optional<RopeScaling> scaling,
               std::optional<std::int64_t> turned)
    : head_dim_(head_dim), turned_(turned.value_or(head_dim)), theta_(theta), scaling_(std::move(scaling)) {}

at::Tensor Rotary::frequencies(at::ScalarType precise, std::int64_t length) const {
  at::Tensor found = plain_frequencies(theta_, turned_, precise);
  if (scaling_) {
    if (const auto* linear = std::get_if<LinearScaling>(&*scaling_)) found = found / linear->factor;
    if (const auto* llama3 = std::get_if<Llama3Scaling>(&*scaling_)) found = stretched_by(*llama3, found);
    if (const auto* yarn = std::get_if<YarnScaling>(&*scaling_)) found = stretched_by(*yarn, found, theta_);
    if (const auto* rope = std::get_if<LongRopeScaling>(&*scaling_))
      found = divided_by(is_beyond_old_context(scaling_, length) ? rope->long_factor : rope->short_factor, found);
  }
  return turned_ == head_dim_ ? found : at::constant_pad_nd(found, {0, (head_dim_ - turned_) / 2});
}

/// The factor of cosines and sines per pair; undefined: 1.
at::Tensor Rotary::amplitudes(at::ScalarType precise) const {
  double factor = 1;
  if (const auto* yarn = scaling_ ? std::get_if<YarnScaling>(&*scaling_) : nullptr) factor = yarn->attention_factor;
  if (const auto* rope = scaling_ ? std::get_if<LongRopeScaling>(&*scaling_) : nullptr) factor = rope->attention_factor;
  if (factor == 1) return {};
  at::Tensor all = at::ones({head_dim_ / 2}, precise);
  all.narrow(0, 0, turned_ / 2).fill_(factor);
  return all;
}

/// For positions 0 .. positions-1, on the frequencies' device.
Rotary::Table Rotary::angles(const at::Tensor& frequencies, std::int64_t positions) const {
  const at::Tensor all = at::arange(positions, frequencies.options().dtype(at::kLong)).to(frequencies.scalar_type());
  const at::Tensor angles = all.unsqueeze(1) * frequencies;
  Table found{angles.cos(), angles.sin()};
  if (const at::Tensor factors = amplitudes(frequencies.scalar_type()); factors.defined())
    for (at::Tensor* part : {&found.cos, &found.sin}) part->mul_(factors.to(frequencies.device()));
  return found;
}

Rotary::Table Rotary::table(std::int64_t length, at::ScalarType type, at::Device device) {
  const at::ScalarType precise = at::toOpMathType(type);
  const bool kind = kept_.cos.defined() && kept_.cos.scalar_type() == precise && kept_.cos.device() == device;
  if (kind && kept_length_ >= length) return kept_;
  kept_length_ = kind ? std::max(length, 2 * kept_length_) : length;
  const at::Device place = device.is_meta() ? at::kMeta : at::kCPU;
  kept_ = angles(frequencies(precise, kept_length_).to(place), kept_length_);
  if (is_beyond_old_context(scaling_, kept_length_)) {
    const std::int64_t old_context = *old_context_of(scaling_);
    const Table within = angles(frequencies(precise, old_context).to(place), old_context);
    kept_ = {at::cat({within.cos, kept_.cos}), at::cat({within.sin, kept_.sin})};
  }
  kept_ = {kept_.cos.to(device), kept_.sin.to(device)};
  return kept_;
}

at::Tensor Rotary::rows(const at::Tensor& x, const at::Tensor& positions, const at::Tensor& documents,
                        std::int64_t length) const {
  if (!is_beyond_old_context(scaling_, length)) return positions;
  const std::int64_t B = x.size(0), T = x.size(1), old_context = *old_context_of(scaling_);
  const auto numbers = at::TensorOptions().dtype(at::kLong).device(x.device());
  const at::Tensor mine = positions.defined() ? positions : at::arange(T, numbers).expand({B, T});
  if (mine.numel() == 0) return mine;
  at::Tensor last;  // position in the token's document
  if (documents.defined()) {
    const at::Tensor number = documents.to(at::kLong).clamp_min(-1) + 1;  // padding has -1, and a trunk less
    last = at::zeros({B, T + 1}, numbers).scatter_reduce(1, number, mine, "amax").gather(1, number);
  } else {
    last = mine.amax({1}, /*keepdim=*/true);
  }
  return mine + (last >= old_context).to(at::kLong) * old_context;
}

at::Tensor rotate(const at::Tensor& x, const Rotary::Table& table, const at::Tensor& rows) {
  const auto of_tokens = [&](const at::Tensor& t) {
    return rows.defined() ? t.index({rows}).unsqueeze(2) : t.narrow(0, 0, x.size(1)).unsqueeze(1);
  };
  const at::Tensor cos = of_tokens(table.cos), sin = of_tokens(table.sin);
  const auto halves = x.to(cos.scalar_type()).chunk(2, -1);
  return at::cat({halves[0] * cos - halves[1] * sin, halves[1] * cos + halves[0] * sin}, -1).to(x.scalar_type());
}

}  // namespace zero
