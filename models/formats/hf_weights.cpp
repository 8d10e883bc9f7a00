#include "models/formats/hf_weights.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "base/error.h"
#include "base/log.h"
#include "models/families/families.h"

namespace zero {

HfWeights::HfWeights(std::shared_ptr<const HfDirectory> directory, UnusedTensors unused)
    : directory_(std::move(directory)), unused_(unused) {
  const DecoderNames& names = family_of(directory_->config().model_type).names;
  embedding_ = names.embedding + ".weight";
  head_ = names.head + ".weight";
}

/// Some tied models store only the head's name. Some models of any family omit the first part of names, which belongs
/// to the class with a head.
std::string HfWeights::stored_name(const std::string& name) const {
  if (directory_->find(name)) return name;
  const std::string without = name.substr(name.find('.') + 1);
  if (name != head_ && directory_->find(without)) return without;
  const bool is_head = name == embedding_ && directory_->config().tie_word_embeddings && directory_->find(head_);
  return is_head ? head_ : name;
}

/// If a head is stored with the embedding and differs from it, transformers does not tie it.
void HfWeights::check_values() {
  const std::string name = stored_name(embedding_);
  const StoredTensor *embedding = directory_->find(name), *head = directory_->find(head_);
  if (!directory_->config().tie_word_embeddings || !embedding || !head || name == head_) return;
  constexpr std::int64_t at_once = 1 << 22;
  std::int64_t numel = 1;
  for (const std::int64_t size : embedding->shape) numel *= size;
  bool same = embedding->shape == head->shape;
  for (std::int64_t begin = 0; same && begin < numel; begin += at_once) {
    const std::int64_t count = std::min(at_once, numel - begin);
    const at::Tensor ours = at::empty({count}, at::kFloat), theirs = at::empty({count}, at::kFloat);
    directory_->read(name, begin, count, ours);
    directory_->read(head_, begin, count, theirs);
    same = at::equal(ours, theirs);
  }
  if (!same)
    throw InputError(text(directory_->folder(), ": config.json says \"tie_word_embeddings\": true, and the stored ",
                          head_, " differs from ", name, ": set it to false, or take the head out of the file"));
}

void HfWeights::check(const std::vector<TensorSpec>& tensors) {
  std::set<std::string> asked;
  for (const auto& tensor : tensors) {
    const std::string name = stored_name(tensor.name);
    const StoredTensor* stored = directory_->find(name);
    if (!stored)
      throw InputError(text(
          directory_->folder(), ": tensor \"", tensor.name, "\" ", shape_text(tensor.shape), " is missing",
          tensor.name == head_ ? "; if the head is the embedding, config.json must say \"tie_word_embeddings\": true"
                               : ""));
    if (stored->shape != tensor.shape)
      throw InputError(text(directory_->folder(), ": tensor \"", name, "\" has the shape ", shape_text(stored->shape),
                            ", but config.json makes it ", shape_text(tensor.shape)));
    if (!stored->type || !at::isFloatingType(*stored->type))
      throw InputError(text(directory_->folder(), ": tensor \"", name, "\" is ", stored->dtype,
                            "; F32, F16, BF16 and F64 are read"));
    asked.insert(name);
  }
  settle_the_rest(asked);
}

void HfWeights::settle_the_rest(const std::set<std::string>& asked) {
  if (settled_) return;
  const DecoderNames& names = family_of(directory_->config().model_type).names;
  std::vector<std::string> of_the_model, others;
  for (const std::string& name : directory_->names()) {
    const bool tied_head = name == head_ && directory_->config().tie_word_embeddings;  // see check_values()
    if (asked.contains(name) || tied_head || is_computed(name)) continue;
    (belongs_to_decoder(name, names) ? of_the_model : others).push_back(name);
  }
  settle_unused(directory_->folder(), of_the_model, others, unused_);
  settled_ = true;
}

void HfWeights::read(const TensorSpec& tensor, std::int64_t begin, std::int64_t count, const at::Tensor& out) {
  directory_->read(stored_name(tensor.name), begin, count, out);
}

}  // namespace zero
