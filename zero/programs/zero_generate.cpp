// zero_generate: continues prompts with a model, chats with it, or writes its logits.
#include <CLI/CLI.hpp>

#include <ATen/ATen.h>

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <iomanip>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/counted.h"
#include "base/error.h"
#include "base/json_text.h"
#include "base/log.h"
#include "base/utf8.h"
#include "cmake/version.h"
#include "models/families/families.h"
#include "models/formats/generation_config.h"
#include "models/formats/safetensors_writer.h"
#include "models/formats/tokenizer_files.h"
#include "models/generate/chat_history.h"
#include "models/generate/generator.h"
#include "models/generate/stored_weights.h"
#include "models/nn/matmul_setting.h"
#include "models/text/chat_tokenizer.h"
#include "models/text/tokenizer.h"
#include "zero/config/nearest_key.h"
#include "zero/config/read_paths.h"
#include "zero/data/examples/prompts.h"
#include "zero/programs/chat_loop.h"
#include "zero/programs/command_line.h"
#include "zero/programs/model_source.h"
#include "zero/programs/program.h"

namespace zero {
namespace {

using Clock = std::chrono::steady_clock;
using Ids = Generator::Ids;

struct Arguments {
  std::string model, adapter, tokenizer, base, prompt, prompts, ids, logits, precision = "fp32", system, chat_template,
                                                                             tools, variables;
  GenerateOptions options;
  bool json = false, chat = false, allow_unused = false;
  bool has_prompt = false;  // --prompt was given, possibly empty
};

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

Model load_model(const ModelSource& source, const Arguments& arguments) {
  const auto begin = Clock::now();
  Model model = make_model(source.config);
  const auto& stored = source.stored;
  if (stored && stored->lora) add_lora(model, *stored->lora);
  const HeldWeights held =
      load_as_stored(model, arguments.precision == "bf16" ? at::kBFloat16 : at::kFloat,
                     stored ? *stored->weights : *source.weights, stored ? stored->type_of : StoredTypeOf());
  log_info(source.folder, arguments.adapter.empty() ? "" : " with " + arguments.adapter, ": ", model.numel(),
           " parameters ", description(held, arguments.precision), std::fixed, std::setprecision(1), ", read in ",
           seconds_since(begin), " s");
  return model;
}

/// Reads a JSON list of ids if the file is JSON, otherwise little-endian uint16 ids.
Ids read_ids(const std::string& path) {
  const std::string content = read_text_file(path, 1 << 30);
  const bool list = content.find('[') == content.find_first_not_of(" \t\r\n") &&
                    content.find('[') != std::string::npos &&
                    content.find_first_not_of("[]0123456789, \t\r\n") == std::string::npos;
  Ids ids;
  if (list) {
    for (const auto& id : parse_json(content, path, {.bytes = 1 << 30, .depth = 1})) {
      if (!id.is_number_unsigned() || id.get<std::uint64_t>() > INT32_MAX)
        throw InputError(text(path, ": ", id.dump(), " is no token id"));
      ids.push_back(id.get<std::int32_t>());
    }
  } else {
    if (content.size() % 2 != 0)
      throw InputError(
          text(path, ": ", content.size(), " bytes are no whole number of uint16 ids, nor is it a JSON list"));
    for (std::size_t i = 0; i < content.size(); i += 2)
      ids.push_back(static_cast<unsigned char>(content[i]) | static_cast<unsigned char>(content[i + 1]) << 8);
  }
  if (ids.empty()) throw InputError(text(path, ": holds no token ids"));
  return ids;
}

void write_logits(const ModelSource& source, const Arguments& arguments) {
  const Ids ids = read_ids(arguments.ids);
  const std::string& path = arguments.logits;
  Model model = load_model(source, arguments);
  const at::Tensor logits_1TV = Generator(model).logits(ids);
  SafetensorsWriter writer(path, {{"logits", at::kFloat, logits_1TV.sizes().vec()}});
  writer.append(logits_1TV);
  writer.finish();
  log_info(path, ": logits [1, ", logits_1TV.size(1), ", ", logits_1TV.size(2), "]");
}

void print(const std::string& content) {
  std::fwrite(content.data(), 1, content.size(), stdout);
  require_written_output();
}

void print_json(const Prompt& prompt, const Ids& made, const Tokenizer& tokenizer,
                const std::vector<std::int64_t>& stop_ids) {
  const nlohmann::ordered_json line = continued(prompt, made, tokenizer, stop_ids);
  print(line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

std::vector<std::int64_t> stop_ids(const ModelSource& source) {
  return stop_ids_of(source.config, source.options.base, source.options.tokenizer);
}

/// The tokenizer of --tokenizer, or that of the model or adapter.
Tokenizer load_tokenizer(const ModelSource& source, const std::string& named) {
  const std::string& path = source.options.tokenizer.tokenizer;
  if (named.empty() && !Tokenizer::lies_at(path))
    throw InputError(text(source.folder,
                          ": holds no tokenizer.json, tokenizer.model or spiece.model, and prompts need a tokenizer: ",
                          "name one by --tokenizer"));
  try {
    return Tokenizer::load(path);
  } catch (const InputError& error) {
    throw InputError(named.empty() ? error.what() : text("--tokenizer ", error.what()));
  }
}

/// The template of --chat-template, otherwise that of the adapter or the model.
ChatTemplate chat_template_of(const ModelSource& source) {
  return ChatTemplate::load(source.options.tokenizer.settings, source.options.tokenizer.chat_template,
                            "--chat-template");
}

/// A chat model rarely answers a bare prompt well, so warn. Returns false if the template cannot be read, since the
/// prompt does not need it.
bool has_chat_template(const ModelSource& source) {
  try {
    return chat_template_of(source.options.tokenizer).has_value();
  } catch (const InputError&) {
    return false;
  }
}

void generate(const ModelSource& source, Arguments arguments) {
  const bool one = arguments.prompts.empty();
  require_utf8(arguments.prompt, "--prompt");
  const std::vector<std::string> lines = one ? std::vector<std::string>{} : read_prompts(arguments.prompts);
  const Tokenizer tokenizer = load_tokenizer(source, arguments.tokenizer);
  const Prompter prompter(tokenizer, source.options.tokenizer.settings);
  arguments.options.stop_ids = stop_ids(source);
  std::vector<Prompt> prompts;
  if (one) {
    prompts = {text_prompt(arguments.prompt, "--prompt", prompter)};
  } else if (holds_chats(arguments.prompts)) {
    const ChatTemplate chat_template = chat_template_of(source);
    prompts = chat_prompts(lines, arguments.prompts, chat_template, prompter);
    arguments.options.stop_ids.push_back(end_of_turn_of(chat_template, prompter.chat()));
  } else {
    prompts = text_prompts(lines, arguments.prompts, prompter);
  }
  std::vector<Ids> ids;
  for (const Prompt& prompt : prompts) ids.push_back(prompt.ids);
  const bool leaves_out_chat = (one || !holds_chats(arguments.prompts)) && has_chat_template(source);
  Model model = load_model(source, arguments);

  const bool as_text = one && !arguments.json;
  TextStream stream(prompter.tokenizer(), false);
  const auto begin = Clock::now();
  double first = 0;
  const auto made = Generator(model).generate(ids, arguments.options, [&](std::int64_t, std::int32_t id) {
    if (first == 0) {
      first = seconds_since(begin);
      if (as_text) print(arguments.prompt);  // printed only now, since the prompt could have been invalid
    }
    if (as_text) print(stream.next(id));
  });
  const double total = seconds_since(begin);
  if (as_text) print(stream.finish() + "\n");
  if (!as_text)
    for (std::size_t row = 0; row < prompts.size(); ++row)
      print_json(prompts[row], made[row], prompter.tokenizer(), arguments.options.stop_ids);
  std::size_t read = 0, written = 0;
  for (const auto& row : ids) read += row.size();
  for (const auto& row : made) written += row.size();
  const std::size_t further = written - std::min(written, made.size());  // reading the prompt makes the first token
  const double seconds = total - first;
  log_info(
      std::fixed, std::setprecision(2), "prompt: ", counted(std::int64_t(read), "token"), " in ", first, " s; made ",
      written, " in ", seconds, " s more",
      further > 0 && seconds > 0 ? text(", ", std::llround(static_cast<double>(further) / seconds), " a second") : "");
  const auto context = static_cast<std::size_t>(model.config.max_position_embeddings);
  for (std::size_t row = 0; row < ids.size(); ++row)
    if (ids[row].size() + made[row].size() >= context &&
        static_cast<std::int64_t>(made[row].size()) < arguments.options.max_new_tokens)
      log_info("note: ", one ? "" : text("prompt ", row + 1, ": "), "the context of ", context, " tokens is full");
  if (leaves_out_chat)
    log_info("note: the model has a chat template, and a prompt is continued without it; ",
             one ? "--chat answers by it" : "conversations in a .jsonl file are answered by it");
}

/// Options have the names of the fields they set.
void check_sampling(const SamplingOptions& options) {
  try {
    validate(options);
  } catch (const InputError& error) {
    throw InputError(std::string("--") + error.what());
  }
}

/// Reads the file of --tools and the object of --chat-template-kwargs.
ChatContext context_of(const Arguments& arguments) {
  ChatContext context;
  const auto take = [](const std::string& content, const std::string& place) {
    return std::make_shared<const nlohmann::ordered_json>(parse_ordered_json(content, place));
  };
  if (!arguments.tools.empty()) context.tools = take(read_text_file(arguments.tools), arguments.tools);
  if (context.tools && !context.tools->is_array())
    throw InputError(text("--tools ", arguments.tools, ": must hold a JSON list of tools"));
  if (!arguments.variables.empty()) context.variables = take(arguments.variables, "--chat-template-kwargs");
  if (context.variables && !context.variables->is_object())
    throw InputError("--chat-template-kwargs must be a JSON object, such as {\"enable_thinking\": false}");
  return context;
}

/// Reports errors that every message of the chat would cause, before the model is read.
void require_chat(const ChatTemplate& chat_template, const std::string& system, const ChatContext& context) {
  std::vector<Message> messages{{"user", "?"}};
  if (!system.empty()) messages.insert(messages.begin(), {"system", system});
  try {
    chat_template.prompt(messages, context);
  } catch (const InputError& error) {
    throw InputError(text("--chat: ", error.what()));
  }
}

void chat(const ModelSource& source, Arguments arguments) {
  const Tokenizer tokenizer = load_tokenizer(source, arguments.tokenizer);
  const Prompter prompter(tokenizer, source.options.tokenizer.settings);
  const ChatTemplate chat_template = chat_template_of(source);
  const std::int64_t context = source.config.max_position_embeddings;
  ChatHistory history(chat_template, prompter.chat(), context, std::min(arguments.options.max_new_tokens, context / 4));
  const ChatContext beside = context_of(arguments);
  history.set_context(beside);
  require_utf8(arguments.system, "--system");
  require_utf8(arguments.prompt, "--prompt");
  require_chat(chat_template, arguments.system, beside);
  if (!arguments.system.empty()) history.set_system(arguments.system);
  arguments.options.stop_ids = stop_ids(source);
  Model model = load_model(source, arguments);
  Generator generator(model);
  if (arguments.has_prompt)
    answer_once(generator, history, prompter.tokenizer(), arguments.options, arguments.prompt, print);
  else
    chat_loop(generator, history, prompter.tokenizer(), arguments.options,
              {std::cin, print, ::isatty(STDIN_FILENO) != 0});
}

void describe(CLI::App& app, Arguments& arguments) {
  app.add_option(
         "model", arguments.model,
         "model directory (config.json, *.safetensors, tokenizer files), a GGUF file, or a run's folder or a checkpoint of "
         "zero_train")
      ->required();
  app.add_option("--adapter", arguments.adapter,
                 "LoRA adapter (a PEFT directory, or the folder of the run that made it) to add to the model");
  auto* prompt = app.add_option("--prompt", arguments.prompt,
                                "text to continue; prompt and continuation go to standard output as they come");
  auto* prompts = app.add_option(
      "--prompts", arguments.prompts,
      "file with one prompt a line, none of them blank, continued as one batch; prints a JSON line for each: prompt, text, "
      "ids. A .jsonl file holds a conversation a line, which the chat template writes and the model answers");
  auto* ids =
      app.add_option("--ids", arguments.ids,
                     "file of token ids, a JSON list such as [1, 15043] or raw little-endian uint16, for --logits");
  auto* logits =
      app.add_option("--logits", arguments.logits,
                     "safetensors file to write: \"logits\" [1, T, vocabulary] in fp32 for the T ids of --ids");
  ids->needs(logits)->excludes(prompt)->excludes(prompts);
  logits->needs(ids);
  prompt->excludes(prompts);
  auto* chat = app.add_flag(
      "--chat", arguments.chat,
      "answer the lines of standard input, each with what was said before in the context, until its end or /exit; a line "
      "\"/tool TEXT\" is what a tool says. With --prompt: answer that once");
  chat->excludes(prompts)->excludes(ids);
  app.add_option("--system", arguments.system, "system message of the chat")->needs(chat);
  app.add_option(
      "--chat-template", arguments.chat_template,
      "name of a known template, or a file with a Jinja template; replaces that of the model or the adapter");
  app.add_option("--tools", arguments.tools, "file with a JSON list of tools that the chat's template shows")
      ->needs(chat);
  app.add_option("--chat-template-kwargs", arguments.variables,
                 "JSON object of further variables for the chat template: '{\"enable_thinking\": false}'")
      ->needs(chat);
  app.add_option("--max-new-tokens", arguments.options.max_new_tokens,
                 "largest number of new tokens, also per answer of a chat (default there: 512)")
      ->capture_default_str()
      ->check(CLI::Range(0, 1 << 30));
  SamplingOptions& sampling = arguments.options.sampling;
  app.add_option("--temperature", sampling.temperature, "0: always the likeliest token (greedy)")
      ->capture_default_str();
  app.add_option("--top-k", sampling.top_k, "draw from the k likeliest tokens; 0: from all")->capture_default_str();
  app.add_option("--top-p", sampling.top_p, "draw from the fewest tokens whose probabilities reach p")
      ->capture_default_str();
  app.add_option("--repetition-penalty", sampling.repetition_penalty, "above 1: tokens seen before become less likely")
      ->capture_default_str();
  app.add_option("--seed", sampling.seed, "of the draws, 0 or above: the same seed draws the same tokens again")
      ->capture_default_str()
      ->check([](const std::string& given) { return given.starts_with('-') ? given + " is below 0" : ""; });
  app.add_option("--precision", arguments.precision, "of arithmetic and weights, but for blocks of a GGUF file")
      ->capture_default_str()
      ->check(CLI::IsMember({"fp32", "bf16"}));
  app.add_option(
      "--tokenizer", arguments.tokenizer,
      "tokenizer.json, tokenizer.model or a folder with one, instead of that of the adapter or the model directory");
  app.add_option("--base", arguments.base, base_help);
  app.add_flag("--json", arguments.json, "print a JSON line for --prompt, too")->excludes(chat);
  app.add_flag("--allow-unused", arguments.allow_unused, allow_unused_help);
}

int run(int argc, char** argv) {
  Arguments arguments;
  CLI::App app("Continues text by a model directory, chats with it, or writes the model's logits.", "zero_generate");
  describe(app, arguments);
  if (const auto code = parse_command_line(app, argc, argv, version_text("zero_generate"))) return *code;
  arguments.has_prompt = app.count("--prompt") > 0;
  if (arguments.ids.empty() && !arguments.chat && !arguments.has_prompt && app.count("--prompts") == 0)
    throw InputError(
        "one of --prompt, --prompts, --chat, or --ids with --logits is required (zero_generate --help lists the arguments)");
  if (!arguments.chat_template.empty() && !ChatTemplate::is_choice(arguments.chat_template))
    throw InputError(text("--chat-template ", arguments.chat_template,
                          ": is none of the templates known here, and no file with one",
                          choice_among(arguments.chat_template, ChatTemplate::names())));
  const bool chats = arguments.chat || holds_chats(arguments.prompts);
  if (!arguments.chat_template.empty() && !chats)
    throw InputError("--chat-template is for --chat, and for --prompts with a .jsonl file");
  if (chats && app.count("--max-new-tokens") == 0) arguments.options.max_new_tokens = 512;
  check_sampling(arguments.options.sampling);
  choose_matmul();
  const ModelPlace place =
      resolve({arguments.model, arguments.adapter, arguments.tokenizer,
               arguments.allow_unused ? UnusedTensors::allow : UnusedTensors::refuse, arguments.base});
  require_base_of_checkpoint(place);
  arguments.adapter = place.adapter;
  ModelSource source = open_model(place);
  if (!arguments.logits.empty())
    check_tensor_file("--logits", arguments.logits,
                      {{"the model", place.model},
                       {"--adapter", place.adapter},
                       {"--ids", arguments.ids},
                       {"the tokenizer", source.options.tokenizer.tokenizer},
                       {"the base", source.options.base}});
  source.weights->check(tensors_of(make_model(source.config)));  // before the tokenizer and the values
  if (!arguments.chat_template.empty()) source.options.tokenizer.chat_template = arguments.chat_template;
  if (!arguments.ids.empty())
    write_logits(source, arguments);
  else if (arguments.chat)
    chat(source, std::move(arguments));
  else
    generate(source, std::move(arguments));
  return 0;
}

}  // namespace
}  // namespace zero

int main(int argc, char** argv) {
  return zero::run_program([&] { return zero::run(argc, argv); });
}
