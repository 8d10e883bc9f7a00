#include "zero/programs/usual_values.h"

#include "base/counted.h"
#include "base/log.h"
#include "models/text/tokenizer.h"
#include "zero/config/setup.h"

namespace zero {

std::string UsualValues::optimizer() const {
  const bool prefers = use != ExampleUse::single;
  const char* const rate = adapts ? (prefers ? "2e-5" : "2e-4") : prefers ? "1e-6" : pretrains ? "6e-4" : "2e-5";
  return text("lr = ", rate, "\n", pretrains && !adapts ? "" : "weight_decay = 0.0\n");
}

std::string UsualValues::preference() const {
  if (use == ExampleUse::single) return "";
  return text("[preference]\nmethod = ", use == ExampleUse::pair ? "\"dpo\"" : "\"kto\"", "\n");
}

std::string UsualValues::length() const { return pretrains ? "steps = 1000\n" : "epochs = 2.0\n"; }

void set_usual_warmup(Config& config) {
  if (config.is_given("lr_scheduler.warmup_steps") || config.is_given("lr_scheduler.warmup_ratio")) return;
  if (config.training.steps)
    config.lr_scheduler.warmup_steps = *config.training.steps / 30;
  else
    config.lr_scheduler.warmup_ratio = 0.03;
}

void enlarge_vocabulary(Config& config) {
  const bool is_named = config.model.preset && !config.data.tokenizer.empty();
  if (!is_named || config.model.fields.contains("vocab_size") || !Tokenizer::lies_at(config.data.tokenizer)) return;
  const std::int64_t ids = Tokenizer::load(config.data.tokenizer).vocab_size();
  if (ids > model_config_of(config).vocab_size) config.model.fields["vocab_size"] = text(ids);
}

std::string describe_values(const Config& config) {
  const TrainingConfig& training = config.training;
  const SchedulerConfig& schedule = config.lr_scheduler;
  const double epochs = training.epochs.value_or(0);
  return text(
      config.preference ? config.preference->method + ", " : "", "lr ", config.optimizer.lr, ", ",
      training.steps ? counted(*training.steps, "step") : text(epochs, epochs == 1 ? " epoch" : " epochs"),
      ", warm-up of ",
      schedule.warmup_ratio > 0 ? text(100 * schedule.warmup_ratio, " %") : counted(schedule.warmup_steps, "step"));
}

}  // namespace zero
