// zero_tokenize: texts to ids and back by a model directory's tokenizer.json, as JSON lines.
#include <CLI/CLI.hpp>

#include <iostream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json_text.h"
#include "base/log.h"
#include "cmake/version.h"
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
  Ids ids;
  for (const nlohmann::json& id : value)
    ids.push_back(static_cast<std::int32_t>(json_index(id, "ids", INT32_MAX, place)));
  return {{"text", pipeline.decode(ids, false)}, {"skipped", pipeline.decode(ids, true)}};
}

Json answer(const TextPipeline& pipeline, const std::string& line, const std::string& place) {
  const nlohmann::json request = parse_json(line, place, {.in_a_file = true});
  const auto has = [&](const char* key) { return request.is_object() && request.contains(key); };
  if (has("messages"))
    throw InputError(
        text(place, ": \"messages\": conversations are not rendered yet, with or without --template; give a \"text\""));
  if (has("text") == has("ids")) throw InputError(text(place, ": must be an object that has \"text\" or \"ids\""));
  return has("text") ? encoded(pipeline, request, place) : decoded(pipeline, request["ids"], place);
}

/// A line that is refused is answered, too, and the next one read.
void serve(const TextPipeline& pipeline, std::istream& in, std::ostream& out) {
  std::string line;
  for (std::int64_t number = 1; std::getline(in, line); ++number) {
    const std::string place = text("line ", number);
    Json reply;
    try {
      reply = answer(pipeline, line, place);
    } catch (const InputError& error) {
      reply = {{"error", error.what()}};
    }
    out << reply.dump(-1, ' ', false, Json::error_handler_t::replace) << '\n';
    if (in.rdbuf()->in_avail() <= 0) out.flush();  // who asks line by line waits for it
  }
  out.flush();
  if (!out) throw Error("standard output cannot be written: is the disk full, or did its reader end?");
}

int run(int argc, char** argv) {
  std::string model, chat_template;
  CLI::App app(
      "Reads JSON lines and answers each: {\"text\": ...} by its token ids with and without special tokens (\"ids\", "
      "\"plain\"), {\"ids\": [...]} by their text with and without special tokens (\"text\", \"skipped\"), a bad line by "
      "{\"error\": ...}.",
      "zero_tokenize");
  app.add_option("model", model, "model directory with tokenizer.json")->required();
  app.add_option("--template", chat_template, "chat template for lines that have \"messages\", which are refused yet");
  if (const auto code = parse_command_line(app, argc, argv, version_text("zero_tokenize"))) return *code;
  const TextPipeline pipeline = TextPipeline::load(model);
  std::ios::sync_with_stdio(false);
  std::cin.tie(nullptr);
  serve(pipeline, std::cin, std::cout);
  return 0;
}

}  // namespace
}  // namespace zero

int main(int argc, char** argv) {
  return zero::run_program([&] { return zero::run(argc, argv); });
}
