#include "zero/train/result/save_result.h"

#include "base/log.h"
#include "comm/agreement/agreement.h"
#include "models/formats/generation_config.h"
#include "models/formats/tokenizer_files.h"
#include "models/text/chat_template.h"
#include "zero/config/setup.h"
#include "zero/output/result_folder.h"
#include "zero/train/result/save_adapter.h"
#include "zero/train/result/save_model.h"

namespace zero {
namespace {

/// Runs `work` around the result on rank 0. A failure must not lose what was trained.
void attempt(const std::function<void()>& work) {
  try {
    work();
  } catch (const std::exception& error) {
    log_warning(error.what());
  }
}

}  // namespace

std::optional<std::string> write_result(Engine& engine, const RunModel& run, const Config& config,
                                        const std::string& folder) {
  std::optional<ResultFolder> result;  // rank 0's
  on_first(engine.host(), [&] { attempt([&] { result.emplace(folder).mark(); }); });
  const std::optional<std::string> failure = agreed_failure_of([&] {
    HfWriteOptions options;
    all_or_none(engine.host(), [&] { options = write_options_of(config); });  // reads files of the base
    if (run.lora) {
      save_adapter(engine, run, folder, base_name_of(config), options.tokenizer);
    } else {
      save_model(engine, run.model, folder, options);
    }
  });
  if (failure) return failure;  // `result` frees disk space
  if (result)
    attempt([&] {
      result->mark();  // marking may have failed before the files were written
      result->finish();
    });
  return std::nullopt;
}

std::string save_result(Engine& engine, const RunModel& run, const Config& config, Checkpoints& checkpoints,
                        const RunPosition& position) {
  const std::string what = run.lora ? "adapter" : "model", folder = config.job.output_dir + "/" + what;
  if (const auto failure = write_result(engine, run, config, folder))
    throw Error(text("the ", what, " could not be written: ", *failure, ". ",
                     checkpoints.remedy(checkpoints.save_anywhere(position))));
  return folder;
}

void check_result(const Config& config, const ModelConfig& model) {
  const HfWriteOptions options = write_options_of(config);
  if (const std::string& choice = config.data.chat_template; ChatTemplate::is_known(choice))
    ChatTemplate::named(choice, "<s>", "</s>");
  else if (!choice.empty())
    ChatTemplate::load(options.tokenizer.settings, choice);
  check_tokenizer_files(tokenizer_source_of(config));
  stop_ids_of(model, options.base, options.tokenizer);
}

}  // namespace zero
