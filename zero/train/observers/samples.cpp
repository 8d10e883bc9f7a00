#include "zero/train/observers/samples.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/files/lookup.h"
#include "base/log.h"
#include "comm/object_collectives.h"
#include "models/decoder/decoder.h"

namespace zero {
namespace {

constexpr CallTag samples_tag{Phase::validate};

/// The run is asked to stop. All ranks throw it.
struct Stopped {};

/// With a tensor axis, the head's input is this rank's part of the tokens.
at::Tensor last_logits(Unit& head, const at::Tensor& x, const ForwardContext& context) {
  const at::Tensor& ids = context.batch->ids;
  if (!context.tensor_ranks) return last_column_logits(head, x, context);
  return logits_of(head, x, context).select(1, ids.size(1) - 1);
}

}  // namespace

void Samples::resumed(const RunPosition& position) {
  resumed_ = true;
  open(position.owed_validation.empty() ? position.steps : position.steps - 1);
}

void Samples::run_begins() {
  if (!resumed_) open(0);
}

void Samples::open(std::int64_t last_step) {
  if (engine_.host().rank() != 0) return;
  const std::string path = samples_path(config_.job.output_dir);
  try {
    file_ = std::make_unique<MetricsWriter>(last_step > 0 && is_there(path) ? MetricsWriter::resume(path, last_step)
                                                                            : MetricsWriter(path));
    file_->lose_waiting();
  } catch (const Error& error) {
    log_warning("the samples of metrics.samples are not recorded: ", error.what());
  }
}

void Samples::went_back(const RunPosition& position) {
  if (file_) file_->cut_after(position.steps);
}

void Samples::write(std::int64_t step) {
  const std::optional<std::vector<Ids>> made = generated();
  if (!made || engine_.host().rank() != 0) return;
  std::vector<Sample> shown;
  for (std::size_t i = 0; i < samples_.prompts.size(); ++i) {
    nlohmann::ordered_json object = {{"version", 1}, {"step", step}};
    object.update(continued(samples_.prompts[i], (*made)[i], *samples_.tokenizer, samples_.options.stop_ids));
    const std::string line = object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    if (file_) file_->write(step, line);
    if (auto sample = sample_of_line(line)) shown.push_back(std::move(sample->sample));
  }
  loop_.add_samples(std::move(shown));
}

/// Rank 0's, whatever the file holds on other nodes.
std::vector<Samples::Ids> Samples::prompts() const {
  nlohmann::json ids;
  for (const Prompt& prompt : samples_.prompts) ids.push_back(prompt.ids);
  return nlohmann::json::parse(broadcast_text(engine_.host(), ids.dump(), 0, samples_tag)).get<std::vector<Ids>>();
}

std::optional<std::vector<Samples::Ids>> Samples::generated() {
  const std::vector<Ids> prompts = this->prompts();
  std::size_t longest = 0;
  for (const Ids& prompt : prompts) longest = std::max(longest, prompt.size());
  ModelConfig model = samples_.model;
  // The cache of keys and values is as long as the context.
  model.max_position_embeddings =
      std::min(model.max_position_embeddings, std::int64_t(longest) + samples_.options.max_new_tokens);
  Generator generator(model, [&](const ForwardContext& context) {
    loop_.gather({}, Pause::part_of_validation);
    if (loop_.stops()) throw Stopped();
    at::Tensor logits = engine_.evaluate(context, last_logits).to(at::kFloat).contiguous();
    engine_.host().broadcast(logits, 0, samples_tag);  // all ranks choose the same tokens, on different processors too
    return logits;
  });
  try {
    return generator.generate(prompts, samples_.options);
  } catch (const Stopped&) {
    return std::nullopt;
  }
}

}  // namespace zero
