#include "models/formats/gguf/gguf_rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"
#include "base/log.h"

namespace zero {
namespace {

using nlohmann::json;

constexpr const char *divisors = "rope_freqs.weight", *long_divisors = "rope_factors_long.weight",
                     *short_divisors = "rope_factors_short.weight";
constexpr const char *type_key = "rope.scaling.type", *factor_key = "rope.scaling.factor",
                     *context_key = "rope.scaling.original_context_length", *attention_key = "rope.scaling.attn_factor";

/// The divisor of a frequency under rope_type "llama3".
double divisor_of(const Llama3Scaling& scaling, double theta, std::int64_t pair, std::int64_t turned) {
  const double wavelength = 2 * std::numbers::pi * std::pow(theta, 2.0 * double(pair) / double(turned));
  const double old_context = double(scaling.original_max_position_embeddings);
  const double kept = std::clamp(
      (old_context / wavelength - scaling.low_freq_factor) / (scaling.high_freq_factor - scaling.low_freq_factor), 0.0,
      1.0);
  return 1 / ((1 - kept) / scaling.factor + kept);
}

/// llama.cpp's default factor for cosines and sines under "yarn".
double usual_amplitude(double factor) { return factor <= 1 ? 1.0 : 0.1 * std::log(factor) + 1.0; }

std::vector<float> read_factors(const GgufFile& file, const std::string& name, std::int64_t pairs) {
  const GgufEntry* stored = file.find(name);
  if (!stored) throw InputError(text(file.path(), ": ", name, " is missing"));
  if (stored->type != GgmlType::f32 || stored->numel() != pairs)
    throw InputError(text(file.path(), ": ", name, " must be ", pairs, " values in F32"));
  std::vector<float> factors(std::size_t(pairs), 0.0F);
  file.read(*stored, 0, pairs, factors.data());
  return factors;
}

/// The file holds the divisors of the frequencies, not the settings behind them. Returns the one of two common settings
/// that gives these divisors.
json llama3_of(const GgufFile& file, std::int64_t turned, double theta) {
  const std::vector<float> factors = read_factors(file, divisors, turned / 2);
  for (const double factor : {8.0, 32.0}) {
    const Llama3Scaling scaling{factor, 1, 4, 8192};
    bool agrees = true;
    for (std::int64_t i = 0; i < turned / 2; ++i) {
      const double wanted = divisor_of(scaling, theta, i, turned);
      agrees = agrees && std::fabs(double(factors[std::size_t(i)]) - wanted) < 1e-4 * wanted;
    }
    if (agrees)
      return {{"rope_type", "llama3"},
              {"factor", factor},
              {"low_freq_factor", scaling.low_freq_factor},
              {"high_freq_factor", scaling.high_freq_factor},
              {"original_max_position_embeddings", scaling.original_max_position_embeddings}};
  }
  throw InputError(text(file.path(),
                        ": rope_freqs.weight is of no known scaling of rotary frequencies (Llama 3.1's and "
                        "3.2's are); take the model's Hugging Face directory"));
}

json longrope_of(GgufKeys& keys, std::int64_t turned, std::int64_t context) {
  const GgufFile& file = keys.file();
  keys.pass_over(type_key);
  return {{"rope_type", "longrope"},
          {"short_factor", read_factors(file, short_divisors, turned / 2)},
          {"long_factor", read_factors(file, long_divisors, turned / 2)},
          {"attention_factor", keys.number(attention_key).value_or(1.0)},
          {"original_max_position_embeddings", keys.integer(context_key).value_or(context)}};
}

json yarn_of(GgufKeys& keys, std::int64_t context) {
  const double factor = keys.number(factor_key).value_or(1.0);
  json found{{"rope_type", "yarn"},
             {"factor", factor},
             {"original_max_position_embeddings", keys.integer(context_key).value_or(context)}};
  keys.expect("rope.scaling.yarn_ext_factor", 1.0);
  keys.expect("rope.scaling.yarn_log_multiplier", 0.0);
  // a converter's key for the whole amplitude, which llama.cpp recomputes, and its factor for it
  const auto whole = keys.number("rope.scaling.yarn_attn_factor"), times = keys.number(attention_key);
  if (whole || times) found["attention_factor"] = times ? *times * usual_amplitude(factor) : *whole;
  if (const auto fast = keys.number("rope.scaling.yarn_beta_fast")) found["beta_fast"] = *fast;
  if (const auto slow = keys.number("rope.scaling.yarn_beta_slow")) found["beta_slow"] = *slow;
  return found;
}

}  // namespace

std::vector<RopeFactors> rope_factors(const ModelConfig& config) {
  if (!config.rope_scaling) return {};
  const auto turned = std::int64_t(double(config.head_dim) * config.rotary_share);
  if (const auto* llama3 = std::get_if<Llama3Scaling>(&*config.rope_scaling)) {
    RopeFactors factors{divisors, {}};
    for (std::int64_t i = 0; i < turned / 2; ++i)
      factors.values.push_back(float(divisor_of(*llama3, config.rope_theta, i, turned)));
    return {factors};
  }
  if (const auto* rope = std::get_if<LongRopeScaling>(&*config.rope_scaling))
    return {{long_divisors, {rope->long_factor.begin(), rope->long_factor.end()}},
            {short_divisors, {rope->short_factor.begin(), rope->short_factor.end()}}};
  return {};
}

const std::vector<std::string>& rope_factor_names() {
  static const std::vector<std::string> names{divisors, long_divisors, short_divisors};
  return names;
}

void add_rope_scaling(GgufMetadata& metadata, const std::string& prefix, const ModelConfig& config) {
  if (!config.rope_scaling) return;
  if (const auto* linear = std::get_if<LinearScaling>(&*config.rope_scaling)) {
    metadata.add(prefix + type_key, "linear");
    metadata.add_float32(prefix + factor_key, linear->factor);
  }
  if (const auto* yarn = std::get_if<YarnScaling>(&*config.rope_scaling)) {
    metadata.add(prefix + type_key, "yarn");
    metadata.add_float32(prefix + factor_key, yarn->factor);
    metadata.add_uint32(prefix + context_key, yarn->original_max_position_embeddings);
    metadata.add_float32(prefix + attention_key, yarn->attention_factor / usual_amplitude(yarn->factor));
    metadata.add_float32(prefix + "rope.scaling.yarn_beta_fast", yarn->beta_fast);
    metadata.add_float32(prefix + "rope.scaling.yarn_beta_slow", yarn->beta_slow);
  }
  if (const auto* rope = std::get_if<LongRopeScaling>(&*config.rope_scaling)) {
    metadata.add(prefix + type_key, "longrope");
    metadata.add_uint32(prefix + context_key, rope->original_max_position_embeddings);
    metadata.add_float32(prefix + attention_key, rope->attention_factor);
  }
}

json read_rope_scaling(GgufKeys& keys, std::int64_t turned, double theta, std::int64_t context) {
  const GgufFile& file = keys.file();
  keys.pass_over("rope.scaling.finetuned");
  if (file.find(long_divisors) || file.find(short_divisors)) return longrope_of(keys, turned, context);
  const std::string type = keys.word(type_key).value_or("linear");
  if (type == "yarn") return yarn_of(keys, context);
  keys.pass_over(context_key);  // Phi-3's files have it without scaling too
  keys.expect(attention_key, 1.0);
  if (type != "linear" && type != "none")
    throw InputError(text(file.path(), ": rope.scaling.type \"", type, "\" is not known here; known are \"none\", ",
                          "\"linear\", \"yarn\" and \"longrope\""));
  double factor = keys.number(factor_key).value_or(1.0);
  if (type == "none") factor = 1;
  if (file.find(divisors)) {
    if (factor != 1)
      throw InputError(
          text(file.path(), ": has rope_freqs.weight and rope.scaling.factor = ", factor,
               ", and one scaling of rotary frequencies is done; take the model's Hugging Face directory"));
    return llama3_of(file, turned, theta);
  }
  return factor == 1 ? json() : json{{"rope_type", "linear"}, {"factor", factor}};
}

}  // namespace zero
