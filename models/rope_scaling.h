#pragma once
// The scaling of rotary frequencies for contexts longer than the pretraining context: the rope types of transformers
// (modeling_rope_utils.py), with its defaults filled in. Does not include LibTorch.
#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

namespace zero {

/// "linear": every frequency is divided by factor.
struct LinearScaling {
  double factor = 1.0;
};

/// "llama3": wavelengths longer than the old context are stretched, and medium ones are partly stretched.
struct Llama3Scaling {
  double factor = 8.0;
  double low_freq_factor = 1.0;
  double high_freq_factor = 4.0;
  std::int64_t original_max_position_embeddings = 8192;
};

/// "yarn" (Peng et al. 2023): dimensions that rotate often enough within the old context do not change, slow ones are
/// stretched, and a ramp connects the two. Cosines and sines are multiplied by attention_factor.
struct YarnScaling {
  double factor = 1.0;
  double attention_factor = 1.0;
  double beta_fast = 32.0;  // rotations in the old context
  double beta_slow = 1.0;
  bool truncate = true;  // the ramp begins and ends at whole dimensions
  std::int64_t original_max_position_embeddings = 2048;
};

/// "longrope" (Ding et al. 2024): a divisor for each frequency, one list for documents within the old context and one
/// for longer ones. Cosines and sines are multiplied by attention_factor.
struct LongRopeScaling {
  std::vector<double> short_factor, long_factor;
  double attention_factor = 1.0;
  std::int64_t original_max_position_embeddings = 4096;
};

using RopeScaling = std::variant<LinearScaling, Llama3Scaling, YarnScaling, LongRopeScaling>;

/// The document length beyond which other frequencies apply. Returns nothing if the length does not matter.
inline std::optional<std::int64_t> old_context_of(const std::optional<RopeScaling>& scaling) {
  const auto* rope = scaling ? std::get_if<LongRopeScaling>(&*scaling) : nullptr;
  return rope ? std::optional(rope->original_max_position_embeddings) : std::nullopt;
}

/// True if a document of `length` tokens uses the frequencies for long documents.
inline bool is_beyond_old_context(const std::optional<RopeScaling>& scaling, std::int64_t length) {
  const std::optional<std::int64_t> old_context = old_context_of(scaling);
  return old_context && length > *old_context;
}

}  // namespace zero
