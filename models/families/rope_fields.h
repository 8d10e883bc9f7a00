#pragma once
// Reads the rotary fields of a config.json: rope_parameters of transformers 5, rope_theta and rope_scaling of older
// files.
#include <optional>

#include "models/families/config_fields.h"
#include "models/rope_scaling.h"

namespace zero {

struct RopeFields {
  double theta = 10000.0;
  std::optional<RopeScaling> scaling;
  double share = 1;  // partial_rotary_factor
};

struct RopeRules {
  std::int64_t max_position_embeddings = 2048;
  /// the pretraining length from the field of this name, which takes precedence over the one in the rope object; 0 if
  /// absent
  std::int64_t original_max_position_embeddings = 0;
  bool old_names_of_longrope = false;  // "su" and "yarn" mean "longrope" (Phi-3)
  bool partial = false;                // heads may rotate only some of their dimensions
};

/// Reads the rope fields that apply to all layers. `found` holds the family's defaults. Throws InputError for an
/// unsupported rope_type (such as "dynamic"), for unknown keys, and if two spellings contradict each other.
RopeFields read_rope(ConfigFields& fields, RopeFields found, const RopeRules& rules);

/// Reads one object of rope_parameters or rope_scaling.
RopeFields read_rope_object(const nlohmann::json& object, RopeFields found, const RopeRules& rules,
                            const ConfigFields& fields);

}  // namespace zero
