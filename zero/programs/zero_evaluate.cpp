// zero_evaluate: computes the loss of a model, optionally with an adapter, on files, and judges its answers to pairs.
// It runs alone, or mpirun starts one process per rank.
#include <CLI/CLI.hpp>

#include <ATen/Parallel.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/counted.h"
#include "base/error.h"
#include "base/log.h"
#include "cmake/version.h"
#include "models/nn/matmul_setting.h"
#include "offload/memory/cpu_allocator.h"
#include "zero/programs/command_line.h"
#include "zero/programs/evaluation.h"
#include "zero/programs/program.h"

namespace zero {
namespace {

void describe_evaluation(CLI::App& app, EvaluationOptions& options, bool& json) {
  app.add_option("model", options.place.model,
                 "model directory, a GGUF file, or a run's folder or a checkpoint of zero_train")
      ->required();
  app.add_option(
         "files", options.files,
         "texts (.txt), conversations, examples, pairs of answers (.jsonl, .json) or token ids (.bin), as data.validation "
         "has them")
      ->required();
  app.add_option("--adapter", options.place.adapter,
                 "LoRA adapter (a PEFT directory, or the folder of the run that made it) to merge into the model");
  app.add_option(
      "--tokenizer", options.place.tokenizer,
      "tokenizer.json, tokenizer.model or a folder with one, instead of that of the adapter or the model directory");
  app.add_option("--base", options.place.base, base_help);
  app.add_option(
      "--chat-template", options.chat_template,
      "name of a known template, or a file with a Jinja template; replaces that of the model or the adapter");
  app.add_option(
         "--seq-len", options.seq_len,
         "tokens of a sequence; longer examples are cut. Default: 1024, or the model's context if that is shorter")
      ->check(CLI::Range(1, 1 << 30));
  app.add_option("--train-on", options.train_on, "tokens of a conversation that count: assistant or all")
      ->capture_default_str()
      ->check(CLI::IsMember({"assistant", "all"}));
  app.add_option("--token-dtype", options.token_dtype, "of .bin files")
      ->capture_default_str()
      ->check(CLI::IsMember({"uint16", "uint32"}));
  app.add_option("--precision", options.precision,
                 "type of weights and arithmetic. Default: that of the run, or the type in which the model is stored")
      ->check(CLI::IsMember({"fp32", "bf16", "fp16"}));
  app.add_option("--cache", options.cache,
                 "folder for tokenised texts, kept for the next call; on several nodes one that all of them see");
  app.add_option("--preference", options.preference.method,
                 "how pairs are judged: dpo, orpo or kto. Default: as the run did, or dpo; kto for judged answers")
      ->check(CLI::IsMember({"dpo", "orpo", "kto"}));
  app.add_option("--beta", options.preference.beta, "factor of rewards. Default: that of the run, or 0.1")
      ->check(CLI::PositiveNumber);
  app.add_option(
      "--reference", options.preference.reference,
      "model with which pairs are compared. Default: the model with which the run began, or the model without "
      "the adapter");
  app.add_flag_callback(
      "--allow-unused", [&options] { options.place.unused = UnusedTensors::allow; }, allow_unused_help);
  app.add_flag("--json", json, "print a JSON object a file");
}

nlohmann::ordered_json object_of(const NamedFigures& figures) {
  nlohmann::ordered_json object = nlohmann::ordered_json::object();
  for (const auto& [name, value] : figures) object[name] = value;
  return object;
}

std::string json_of(const Evaluation& found, const PreferenceFigures& judged) {
  nlohmann::ordered_json object{{"file", found.file}, {"preference", judged.method}};
  if (judged.loss) object["loss"] = *judged.loss;
  object.update(object_of(judged.figures));
  if (!judged.reference.empty()) object["reference"] = object_of(judged.reference);
  object.update({{"tokens", found.tokens}, {"rows", found.sequences}});
  return object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string words_of(const NamedFigures& figures) {
  std::string words;
  for (const auto& [name, value] : figures) {
    char number[32];
    std::snprintf(number, sizeof number, " %.4f", value);
    words += (words.empty() ? "" : ", ") + name + number;
  }
  return words;
}

std::string line_of(const Evaluation& found, const PreferenceFigures& judged) {
  char loss[48] = "";
  if (judged.loss) std::snprintf(loss, sizeof loss, " loss %.6f,", *judged.loss);
  return text(found.file, ": ", judged.method, loss, " ", words_of(judged.figures),
              judged.reference.empty() ? "" : "; reference: " + words_of(judged.reference), "; ", found.sequences,
              judged.method == "kto" ? " answers" : " pairs");
}

std::string line_of(const Evaluation& found, bool json) {
  if (found.preference) return json ? json_of(found, *found.preference) : line_of(found, *found.preference);
  if (json)
    return nlohmann::ordered_json{{"file", found.file},
                                  {"loss", found.loss},
                                  {"perplexity", found.perplexity()},
                                  {"tokens", found.tokens},
                                  {"sequences", found.sequences}}
        .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  char numbers[96];
  std::snprintf(numbers, sizeof numbers, ": loss %.6f, perplexity %.4f, ", found.loss, found.perplexity());
  return found.file + numbers + counted(found.tokens, "token") + " of " + counted(found.sequences, "sequence");
}

}  // namespace
}  // namespace zero

int main(int argc, char** argv) {
  zero::CpuAllocator allocator;
  allocator.install();
  zero::EvaluationOptions options;
  bool json = false;
  CLI::App app("Computes the loss and the perplexity of a model on files, and judges its answers to pairs.",
               "zero_evaluate");
  zero::describe_evaluation(app, options, json);
  if (const auto code = zero::parse_or_refuse(app, argc, argv, zero::version_text("zero_evaluate"))) return *code;
  return zero::Job::run([&](zero::Job& job) {
    zero::start_log(job.rank(), job.size());
    if (!std::getenv("OMP_NUM_THREADS")) at::set_num_threads(job.cores());
    zero::choose_matmul();
    zero::choose_deterministic_products();
    const std::vector<zero::Evaluation> found = zero::evaluate(job, options);
    if (job.rank() == 0) {
      for (const zero::Evaluation& one : found) std::cout << zero::line_of(one, json) << std::endl;
      zero::require_written_output();
    }
    const auto loss_of = [](const zero::Evaluation& one) {
      return one.preference ? one.preference->loss.value_or(0) : one.loss;
    };
    for (const zero::Evaluation& one : found)
      if (!std::isfinite(loss_of(one)))
        throw zero::Error(zero::text(one.file, ": the loss is not finite: the model's weights are, or become in ",
                                     "this precision, infinite or NaN; try --precision fp32"));
    return 0;
  });
}
