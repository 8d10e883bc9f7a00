#pragma once
// AdapterContents: matches the tensors of an adapter's file with a model. It checks that the file holds exactly what
// adapter_config.json declares. Training, merging and GGUF export all read adapters through it.
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "models/families/family.h"
#include "models/lora/peft_directory.h"
#include "models/model.h"

namespace zero {

class AdapterContents {
 public:
  /// The names of the file's tensors for one tensor of the model. An empty name means that there is none.
  struct Place {
    std::string whole;            // replaces the base's tensor
    std::string a, b, magnitude;  // the adapter of a projection: [r, in], [out, r], [out] with DoRA
  };

  /// `model` may already have adapters. Reads no values. Throws an InputError that names the first tensor that is
  /// missing, has the wrong shape or type, or is not declared by adapter_config.json. Also throws if
  /// adapter_config.json declares a tensor that the model cannot have.
  ///
  /// Whole tensors of the model that modules_to_save does not name (embeddings, heads, norms) are accepted. PEFT writes
  /// such tensors with save_embedding_layers and loads them instead of the base's. See beside().
  AdapterContents(std::shared_ptr<const PeftDirectory> directory, const Model& model);

  const std::string& folder() const { return directory_->folder(); }
  const SafetensorsFile& file() const { return directory_->weights(); }
  /// The options of adapter_config.json, resolved for the model (stored_options).
  const LoraOptions& options() const { return options_; }
  /// `tensor` is a tensor of the model without adapters.
  const Place& place(const TensorSpec& tensor) const;
  /// True if the model stores the tensor as [in, out].
  bool is_input_first(const TensorSpec& tensor) const;

  /// The file's whole tensors that modules_to_save does not name. They stay frozen in training. Every adapter that is
  /// trained from this one also contains them.
  const std::vector<StoredTensor>& beside() const { return beside_; }
  /// Throws InputError if the model ties its head to the embedding but the file's two tensors differ. Since it reads
  /// both, call it once, on one rank.
  void check_values() const;

 private:
  class Comparison;
  Place place_of(const TensorSpec& tensor, Comparison& comparison) const;
  void place_tied_head(const TensorSpec& embedding, Comparison& comparison);

  std::shared_ptr<const PeftDirectory> directory_;
  LoraOptions options_;
  DecoderNames names_;
  std::map<std::string, Place> places_;  // by the name of the model's tensor
  std::vector<StoredTensor> beside_;
  bool holds_tied_pair_ = false;
};

/// Opens the adapter in a folder for this model.
std::shared_ptr<const AdapterContents> open_adapter(const std::string& folder, const Model& model);

}  // namespace zero
