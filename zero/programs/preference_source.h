#pragma once
// PreferenceSource: how a model's answers to pairs are judged, by its run or by the user's options.
#include <cstdint>
#include <optional>
#include <string>

#include "zero/config/config.h"
#include "zero/programs/model_source.h"

namespace zero {

/// As users give them.
struct PreferenceOptions {
  std::string method;          // dpo | orpo | kto; empty: the run's, or what the file holds
  std::optional<double> beta;  // none: the run's, or the default
  std::string reference;       // a model; empty: the model with which the run began
};

struct PreferenceSource {
  PreferenceSection settings;
  bool is_named = false;                // the method is the user's or the run's; otherwise the file decides
  std::int64_t exchanged = 0;           // rows that exchange their answers for KTO's divergence; 0: no divergence
  std::optional<ModelPlace> reference;  // resolved; none: unknown
};

/// `named`: the model as the user named it, `resolved`: by resolve(). Without --reference, the reference is the model
/// with which the run began: its base, with the adapter of lora.adapter if it had one. For another adapter it is the
/// model without the adapter. Throws InputError for a reference that is not there.
PreferenceSource preference_source_of(const ModelPlace& named, const ModelPlace& resolved,
                                      const PreferenceOptions& options);

}  // namespace zero
