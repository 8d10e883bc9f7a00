#include "models/formats/hf_weights.h"

#include <set>
#include <sstream>

#include "base/error.h"
#include "base/log.h"

namespace zero {
namespace {

const std::string embedding_name = "model.embed_tokens.weight";
const std::string head_name = "lm_head.weight";

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::ostringstream out;
  out << '[';
  for (std::size_t i = 0; i < shape.size(); ++i) out << (i ? ", " : "") << shape[i];
  out << ']';
  return out.str();
}

}  // namespace

/// Some tied models are stored by the head's name alone.
const std::string& HfWeights::stored_name(const std::string& name) const {
  const bool only_head = name == embedding_name && directory_->config().tie_word_embeddings &&
                         !directory_->find(name) && directory_->find(head_name);
  return only_head ? head_name : name;
}

void HfWeights::check(const std::vector<TensorSpec>& tensors) {
  std::set<std::string> asked;
  for (const auto& tensor : tensors) {
    const std::string& name = stored_name(tensor.name);
    const StoredTensor* stored = directory_->find(name);
    if (!stored)
      throw InputError(text(directory_->folder(), ": tensor \"", tensor.name, "\" ", shape_text(tensor.shape),
                            " is missing",
                            tensor.name == head_name
                                ? "; if the head is the embedding, config.json must say \"tie_word_embeddings\": true"
                                : ""));
    if (stored->shape != tensor.shape)
      throw InputError(text(directory_->folder(), ": tensor \"", name, "\" has the shape ", shape_text(stored->shape),
                            ", but config.json makes it ", shape_text(tensor.shape)));
    if (!stored->type || !at::isFloatingType(*stored->type))
      throw InputError(text(directory_->folder(), ": tensor \"", name, "\" is ", stored->dtype,
                            "; F32, F16, BF16 and F64 are read"));
    asked.insert(name);
  }
  std::vector<std::string> unused;
  for (auto& name : directory_->names()) {
    const bool known =
        name.ends_with("rotary_emb.inv_freq") || (name == head_name && directory_->config().tie_word_embeddings);
    if (!asked.contains(name) && !known) unused.push_back(std::move(name));
  }
  if (!unused.empty())
    log_info("note: ", directory_->folder(), " holds ", unused.size(),
             " tensors that this model does not use, the first is ", unused.front());
}

void HfWeights::read(const TensorSpec& tensor, std::int64_t begin, std::int64_t count, const at::Tensor& out) {
  directory_->read(stored_name(tensor.name), begin, count, out);
}

}  // namespace zero
