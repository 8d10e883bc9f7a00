#pragma once
// UsualValues: the values of a new run that no layout decides, as docs/where-to-begin.md recommends them.
#include <string>

#include "zero/config/config.h"
#include "zero/data/examples/example_use.h"

namespace zero {

struct UsualValues {
  bool pretrains = false;               // from a preset's random weights
  bool adapts = false;                  // LoRA
  ExampleUse use = ExampleUse::single;  // of the data

  /// "lr = 2e-5", with weight_decay where the usual one is not the default: keys of [optimizer], a line each.
  std::string optimizer() const;
  /// The section of the usual method, if the data are preferences.
  std::string preference() const;
  /// "steps = 1000" for a preset, otherwise "epochs = 2.0": a key of [training].
  std::string length() const;
};

/// Warms up for a thirtieth of the steps, or 3 % of the epochs, unless the configuration says otherwise.
void set_usual_warmup(Config& config);

/// Gives a preset as many ids as the tokenizer of the data has, unless the configuration names their number.
void enlarge_vocabulary(Config& config);

/// The rate, length and warm-up of a configuration in words: "lr 2e-05, 2 epochs, warm-up of 3 %". The method of
/// preferences comes first.
std::string describe_values(const Config& config);

}  // namespace zero
