// zero_evaluate: the loss of a model, perhaps with an adapter, on files. Started by mpirun, one process per rank, or
// alone.
#include <CLI/CLI.hpp>

#include <ATen/Parallel.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/log.h"
#include "cmake/version.h"
#include "models/nn/matmul_setting.h"
#include "offload/memory/cpu_allocator.h"
#include "zero/programs/command_line.h"
#include "zero/programs/evaluation.h"
#include "zero/programs/printed_output.h"

namespace zero {
namespace {

void describe_evaluation(CLI::App& app, EvaluationOptions& options, bool& json) {
  app.add_option("model", options.place.model,
                 "model directory, a GGUF file, or a run's folder or a checkpoint of zero_train")
      ->required();
  app.add_option(
         "files", options.files,
         "texts (.txt), conversations and examples (.jsonl, .json) or token ids (.bin), as data.validation has them")
      ->required();
  app.add_option("--adapter", options.place.adapter,
                 "LoRA adapter (a PEFT directory, or the folder of the run that made it) to merge into the model");
  app.add_option(
      "--tokenizer", options.place.tokenizer,
      "tokenizer.json, tokenizer.model or a folder with one, before that of the adapter or the model directory");
  app.add_option("--base", options.place.base, base_help);
  app.add_option(
      "--chat-template", options.chat_template,
      "name of a known template, or a file with a Jinja template; replaces that of the model or the adapter");
  app.add_option(
         "--seq-len", options.seq_len,
         "tokens of a sequence; longer examples are cut. Default: 1024, or the model's context where that is shorter")
      ->check(CLI::Range(1, 1 << 30));
  app.add_option("--train-on", options.train_on, "tokens of a conversation that count: assistant or all")
      ->capture_default_str()
      ->check(CLI::IsMember({"assistant", "all"}));
  app.add_option("--token-dtype", options.token_dtype, "of .bin files")
      ->capture_default_str()
      ->check(CLI::IsMember({"uint16", "uint32"}));
  app.add_option("--precision", options.precision,
                 "of weights and arithmetic. Default: that of the run, or the type in which the model is stored")
      ->check(CLI::IsMember({"fp32", "bf16", "fp16"}));
  app.add_option("--cache", options.cache,
                 "folder for tokenised texts, kept for the next call; on several nodes one that all of them see");
  app.add_flag_callback(
      "--allow-unused", [&options] { options.place.unused = UnusedTensors::allow; }, allow_unused_help);
  app.add_flag("--json", json, "print a JSON object a file");
}

std::string line_of(const Evaluation& found, bool json) {
  if (json)
    return nlohmann::ordered_json{{"file", found.file},
                                  {"loss", found.loss},
                                  {"perplexity", found.perplexity()},
                                  {"tokens", found.tokens},
                                  {"sequences", found.sequences}}
        .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  char numbers[96];
  std::snprintf(numbers, sizeof numbers, ": loss %.6f, perplexity %.4f, ", found.loss, found.perplexity());
  return found.file + numbers + text(found.tokens, " tokens of ", found.sequences, " sequences");
}

}  // namespace
}  // namespace zero

int main(int argc, char** argv) {
  zero::CpuAllocator allocator;
  allocator.install();
  zero::EvaluationOptions options;
  bool json = false;
  CLI::App app("Computes the loss and the perplexity of a model on files, over the ranks that mpirun starts.",
               "zero_evaluate");
  zero::describe_evaluation(app, options, json);
  if (const auto code = zero::parse_or_refuse(app, argc, argv, zero::version_text("zero_evaluate"))) return *code;
  return zero::Job::run([&](zero::Job& job) {
    zero::start_log(job.rank(), job.size());
    if (!std::getenv("OMP_NUM_THREADS")) at::set_num_threads(job.cores());
    zero::choose_fast_matmul();
    zero::choose_deterministic_products();
    const std::vector<zero::Evaluation> found = zero::evaluate(job, options);
    if (job.rank() == 0) {
      for (const zero::Evaluation& one : found) std::cout << zero::line_of(one, json) << std::endl;
      zero::require_written_output();
    }
    for (const zero::Evaluation& one : found)
      if (!std::isfinite(one.loss))
        throw zero::Error(zero::text(one.file, ": the loss is not finite: the model's weights are, or become in ",
                                     "this precision, infinite or NaN; try --precision fp32"));
    return 0;
  });
}
