#pragma once
// The rotary fields of a config.json: rope_parameters of transformers 5, rope_theta and rope_scaling of older files.
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
  /// pretraining length by a field of its own, which goes before that of the object; 0: none
  std::int64_t original_max_position_embeddings = 0;
  bool old_names_of_longrope = false;  // "su" and "yarn" mean "longrope" (Phi-3)
  bool partial = false;                // heads may turn in part
};

/// The fields as they stand for all layers; `found` holds the family's defaults. InputError for another rope_type
/// ("dynamic" among them), for keys that are not known, and where two spellings contradict each other.
RopeFields read_rope(ConfigFields& fields, RopeFields found, const RopeRules& rules);

/// One object of rope_parameters or rope_scaling.
RopeFields read_rope_object(const nlohmann::json& object, RopeFields found, const RopeRules& rules,
                            const ConfigFields& fields);

}  // namespace zero
