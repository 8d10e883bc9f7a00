#pragma once
// Sampler: draws the next token from logits. The steps and their order are those of transformers' generate():
// repetition penalty over all tokens so far, temperature, top-k, top-p, then one draw.
#include <cstdint>
#include <span>
#include <vector>

namespace zero {

struct SamplingOptions {
  double temperature = 0;  // 0: always the most likely token
  std::int64_t top_k = 0;  // 0: no limit
  double top_p = 1;
  double repetition_penalty = 1;
  std::uint64_t seed = 0;
};

/// Throws InputError that names an invalid option and its range.
void validate(const SamplingOptions& options);

class Sampler {
 public:
  /// `row` distinguishes sequences of one batch. Each sequence has its own draws, whatever else is in the batch.
  Sampler(const SamplingOptions& options, std::int64_t row) : options_(options), row_(row) {}

  /// `history` is the prompt and all tokens since. Among equal logits the lowest id wins.
  std::int32_t next(std::span<const float> logits, std::span<const std::int32_t> history);

 private:
  struct Candidate {
    float logit;
    std::int32_t id;
  };
  void penalize(std::span<const std::int32_t> history);
  void keep_top_k();
  std::int32_t draw();

  SamplingOptions options_;
  std::int64_t row_;
  std::int64_t draws_ = 0;
  std::vector<float> logits_;
  std::vector<Candidate> candidates_;
};

}  // namespace zero
