#pragma once
// SavedSplit: a TokenSplit in the saved data of an autograd function.
#include <torch/custom_class.h>

#include "models/parallel/token_split.h"

namespace zero {

struct SavedSplit : torch::CustomClassHolder {
  TokenSplit split;

  static c10::IValue of(const TokenSplit& split) {
    auto saved = c10::make_intrusive<SavedSplit>();
    saved->split = split;
    return c10::IValue::make_capsule(std::move(saved));
  }
  static TokenSplit from(const c10::IValue& value) {
    return c10::static_intrusive_pointer_cast<SavedSplit>(value.toCapsule())->split;
  }
};

}  // namespace zero
