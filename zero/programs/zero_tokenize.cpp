// zero_tokenize: converts texts to ids and back with the tokenizer.json of a model directory or the tokenizer of a GGUF
// file, and conversations with its chat template, as JSON lines.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/lookup.h"
#include "base/json_text.h"
#include "base/log.h"
#include "cmake/version.h"
#include "models/formats/base_model.h"
#include "models/formats/gguf/tokenizer/gguf_tokenizer.h"
#include "models/text/conversation/conversation_template.h"
#include "models/text/jinja/error.h"
#include "models/text/pipeline/text_pipeline.h"
#include "zero/programs/command_line.h"
#include "zero/programs/program.h"

namespace zero {
namespace {

using Json = nlohmann::ordered_json;
using Ids = std::vector<std::int32_t>;

Json encoded(const TextPipeline& pipeline, const nlohmann::json& request, const std::string& place) {
  if (!request["text"].is_string()) throw InputError(text(place, ": \"text\" must be a string"));
  const auto& content = request["text"].get_ref<const std::string&>();
  const Ids inner = pipeline.encode_part(content, false);
  Json reply{{"ids", pipeline.surrounded(inner, true)}, {"plain", pipeline.surrounded(inner, false)}};
  if (json_value<bool>(request, "offsets", false, place))
    for (const TextSpan& span : pipeline.locate(content).characters)
      reply["offsets"].push_back(Json::array({span.begin, span.end}));
  return reply;
}

Json decoded(const TextPipeline& pipeline, const nlohmann::json& value, const std::string& place) {
  if (!value.is_array()) throw InputError(text(place, ": \"ids\" must be a list of token ids"));
  Ids ids, unknown;
  for (const nlohmann::json& id : value) {
    ids.push_back(static_cast<std::int32_t>(json_index(id, "ids", INT32_MAX, place)));
    if (!pipeline.written(ids.back())) unknown.push_back(ids.back());
  }
  Json reply{{"text", pipeline.decode(ids, false)}, {"skipped", pipeline.decode(ids, true)}};
  if (!unknown.empty()) reply["unknown"] = unknown;
  return reply;
}

/// Returns 1 for each id from the one with a block's first character to the one with the block's last.
std::vector<int> mask_of(const std::vector<TextSpan>& ids, const std::vector<jinja::Rendered::Span>& blocks) {
  std::vector<int> mask(ids.size(), 0);
  for (const auto& block : blocks) {
    const auto holds = [&](const TextSpan& id) { return id.begin < block.end && block.begin < id.end; };
    const auto first = std::find_if(ids.begin(), ids.end(), holds);
    const auto last = std::find_if(ids.rbegin(), ids.rend(), holds).base();
    if (first < last) std::fill(mask.begin() + (first - ids.begin()), mask.begin() + (last - ids.begin()), 1);
  }
  return mask;
}

Json rendered(const TextPipeline& pipeline, ConversationTemplates& templates, const std::string& line,
              const std::string& place) {
  ConversationText made;
  try {
    made = templates.render(parse_ordered_json(line, place, {.in_a_file = true}));
  } catch (const jinja::TemplateError& error) {
    throw InputError(text(place, ": ", described(error)));
  } catch (const InputError& error) {
    const std::string message = error.what();
    throw InputError(message.starts_with(place) ? message : text(place, ": ", message));
  }
  const LocatedIds located = pipeline.locate(made.text);
  Json reply{{"text", std::move(made.text)}, {"ids", located.ids}, {"mask", nullptr}};
  if (made.generated) reply["mask"] = mask_of(located.characters, *made.generated);
  return reply;
}

Json answer(const TextPipeline& pipeline, ConversationTemplates& templates, const std::string& line,
            const std::string& place) {
  const nlohmann::json request = parse_json(line, place, {.in_a_file = true});
  const auto has = [&](const char* key) { return request.is_object() && request.contains(key); };
  if (has("text") + has("ids") + has("messages") != 1)
    throw InputError(text(place, ": must be an object that has one of \"text\", \"ids\" and \"messages\""));
  if (has("messages")) return rendered(pipeline, templates, line, place);
  return has("text") ? encoded(pipeline, request, place) : decoded(pipeline, request["ids"], place);
}

/// Answers each line. For an invalid line, writes the error and reads the next line.
void serve(const TextPipeline& pipeline, ConversationTemplates& templates, std::istream& in, std::ostream& out) {
  std::string line;
  for (std::int64_t number = 1; std::getline(in, line); ++number) {
    const std::string place = text("line ", number);
    Json reply;
    try {
      reply = answer(pipeline, templates, line, place);
    } catch (const InputError& error) {
      reply = {{"error", error.what()}};
    }
    out << reply.dump(-1, ' ', false, Json::error_handler_t::replace) << '\n';
    if (in.rdbuf()->in_avail() <= 0) out.flush();  // an interactive user waits for the answer
  }
}

int run(int argc, char** argv) {
  std::string model, chat_template;
  CLI::App app(
      "Reads JSON lines and answers each: {\"text\": ...} by its token ids with and without special tokens (\"ids\", "
      "\"plain\"), {\"ids\": [...]} by their text with and without special tokens (\"text\", \"skipped\"), to which ids that no "
      "token has (\"unknown\") give nothing, {\"messages\": "
      "[...], \"tools\", \"variables\", \"add_generation_prompt\"} by the conversation's \"text\" by the chat template, its "
      "\"ids\" and \"mask\", 1 for what generation blocks wrote (null where the template has none), a bad line by "
      "{\"error\": ...}.",
      "zero_tokenize");
  app.add_option("model", model, "model directory with tokenizer.json, or a GGUF file")->required();
  app.add_option(
      "--template", chat_template,
      "name of a known chat template, or a file with one, for lines that have \"messages\", before the folder's own");
  if (const auto code = parse_command_line(app, argc, argv, version_text("zero_tokenize"))) return *code;
  if (is_gguf_model(model)) {
    const GgufFile file(model);
    const std::string why = why_no_tokenizer(file);
    if (!why.empty()) throw InputError(text(model, ": ", why));
    model = gguf_tokenizer_folder(file);
  }
  if (!is_there(model + "/tokenizer.json") && is_there(model + "/tokenizer.model"))
    throw InputError(model +
                     ": has a SentencePiece tokenizer.model alone, and zero_tokenize serves tokenizer.json: "
                     "zero_train CONFIG --preview N --json shows the ids of examples by such a tokenizer");
  const TextPipeline pipeline = TextPipeline::load(model);
  ConversationTemplates templates(model, chat_template);
  std::ios::sync_with_stdio(false);
  std::cin.tie(nullptr);
  serve(pipeline, templates, std::cin, std::cout);
  require_written_output();
  return 0;
}

}  // namespace
}  // namespace zero

int main(int argc, char** argv) {
  return zero::run_program([&] { return zero::run(argc, argv); });
}
