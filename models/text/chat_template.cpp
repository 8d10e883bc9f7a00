#include "models/text/chat_template.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/files/lookup.h"
#include "base/json_text.h"
#include "base/log.h"
#include "models/text/conversation/answer_spans.h"
#include "models/text/conversation/conversation_template.h"
#include "models/text/conversation/lost_text.h"
#include "models/text/conversation/shown_conversation.h"
#include "models/text/known_chat_templates.h"
#include "models/text/tokenizer.h"

namespace zero {
namespace {

constexpr std::string_view system_open = "<|im_start|>system\n", system_close = "<|im_end|>\n";

std::vector<Message> as_taken(const ConversationTemplate& engine, const std::vector<Message>& messages,
                              const ChatContext& context) {
  return with_arguments_as_taken(engine, with_parts_as_taken(engine, messages, context), context);
}

/// Throws for a role out of turn, with a message of this project that names the chat message. The template would not.
void require_turns(const std::vector<Message>& messages, const std::string& name) {
  const std::size_t first = !messages.empty() && messages[0].role == "system" ? 1 : 0;
  for (std::size_t i = first; i < messages.size(); ++i) {
    const bool asks = (i - first) % 2 == 0;
    if ((messages[i].role == "user") == asks) continue;
    throw InputError(text("message ", i + 1, " is of the ", messages[i].role, " where the template ", name, " wants ",
                          asks ? "user" : "assistant",
                          ": after an optional system message, user and assistant alternate"));
  }
}

// A ChatML source without its default system message, and that message, which must be literal text and not an
// expression.
std::pair<std::string, std::string> without_system(const std::string& canonical) {
  const std::size_t open = canonical.find(system_open);
  const std::size_t close = open == std::string::npos ? open : canonical.find(system_close, open);
  if (close == std::string::npos) return {canonical, ""};
  const std::size_t begin = open + system_open.size();
  if (canonical.substr(begin, close - begin).find(jinja_separator) != std::string::npos) return {canonical, ""};
  return {canonical.substr(0, begin) + "SYSTEM" + canonical.substr(close), canonical.substr(begin, close - begin)};
}

std::string list_of_names() {
  std::string list;
  for (const std::string& name : ChatTemplate::names()) list += (list.empty() ? "" : ", ") + name;
  return list;
}

// Returns a token by its name; null in tokenizer_config.json means none. If no file names the token, it is
// LlamaTokenizer's default in transformers, or empty if Tokenizer::load uses a tokenizer.json.
std::string token_text(const nlohmann::json& config, const ConversationTokens& found, const std::string& directory,
                       const char* name, const char* otherwise) {
  for (const auto& [known, content] : found)
    if (known == name) return content;
  return config.contains(name) || Tokenizer::is_json(directory) ? "" : otherwise;
}

}  // namespace

const std::vector<std::string>& ChatTemplate::names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const KnownChatTemplate& known : known_chat_templates())
      if (all.empty() || all.back() != known.name) all.emplace_back(known.name);
    return all;
  }();
  return names;
}

bool ChatTemplate::is_known(const std::string& name) { return known_chat_template(name) != nullptr; }

ChatTemplate::ChatTemplate(const KnownChatTemplate& known, const std::string& default_system, std::string jinja,
                           const ConversationTokens& tokens)
    : name_(known.name),
      jinja_(std::move(jinja)),
      own_(std::make_shared<const ConversationTemplate>(
          FolderTemplates::Source{with_generation_blocks(known, default_system), name_}, tokens)) {
  end_of_turn_ = name_ == "chatml" ? "<|im_end|>" : name_ == "llama-3" ? "<|eot_id|>" : own_->token("eos_token");
  if (end_of_turn_.empty())
    throw InputError(
        text("the chat template ", name_,
             " ends answers with eos_token, but tokenizer_config.json names none: name it there, or another template"));
  if (own_->mentions("bos_token") && own_->token("bos_token").empty())
    throw InputError(text("the chat template ", name_,
                          " uses bos_token, but tokenizer_config.json names none: name it there, or another template"));
}

std::optional<ChatTemplate> ChatTemplate::known(const std::string& jinja, const ConversationTokens& tokens) {
  const auto [source, default_system] = without_system(canonical_jinja(jinja));
  for (const KnownChatTemplate& known : known_chat_templates())
    if (canonical_jinja(known.jinja) == source) return ChatTemplate(known, default_system, jinja, tokens);
  return std::nullopt;
}

ChatTemplate ChatTemplate::recognise(const std::string& jinja, const std::string& bos, const std::string& eos,
                                     const std::string& place, const std::string& setting) {
  if (auto found = known(jinja, {{"bos_token", bos}, {"eos_token", eos}})) return *std::move(found);
  throw InputError(text(place, ": the chat template is none of those known (", list_of_names(),
                        "); name the one of these that the model was trained with by ", setting));
}

ChatTemplate ChatTemplate::named(const std::string& name, const std::string& bos, const std::string& eos,
                                 const std::string& setting) {
  if (const KnownChatTemplate* known = known_chat_template(name))
    return recognise(std::string(known->jinja), bos, eos, text(setting, " ", name), setting);
  throw InputError(text(setting, " ", name, ": is not known; known templates: ", list_of_names()));
}

bool ChatTemplate::is_choice(const std::string& choice) { return is_known(choice) || is_file(choice); }

ChatTemplate ChatTemplate::load(const std::string& directory, const std::string& choice, const std::string& setting) {
  const nlohmann::json config = read_json_object(directory + "/tokenizer_config.json");
  if (!choice.empty() && !is_choice(choice))
    throw InputError(text(setting, " ", choice, ": is not known, and no file; known templates: ", list_of_names()));
  FolderTemplates templates = FolderTemplates::read(directory);
  const std::string bos = token_text(config, templates.tokens, directory, "bos_token", "<s>"),
                    eos = token_text(config, templates.tokens, directory, "eos_token", "</s>");
  if (!choice.empty()) templates.by_name = {{"default", FolderTemplates::named(choice)}};
  const FolderTemplates::Source* source = templates.chosen(false);
  if (!source)
    throw InputError(text(
        directory, " has no chat template (chat_template in tokenizer_config.json, or chat_template.jinja); name by ",
        setting, " one of ", list_of_names(), ", or a file with a template"));
  templates.tokens.insert(templates.tokens.end(), {{"bos_token", bos}, {"eos_token", eos}});
  std::erase_if(templates.tokens, [](const auto& token) { return token.second.empty(); });
  const auto engine = [&](const FolderTemplates::Source& of) {
    return std::make_shared<const ConversationTemplate>(of, templates.tokens);
  };
  ChatTemplate found = known(source->jinja, templates.tokens).value_or(ChatTemplate());
  if (found.name_.empty()) {
    found.name_ = "jinja";
    found.place_ = source->place;
    found.jinja_ = source->jinja;
    found.own_ = engine(*source);
    found.end_of_turn_ = end_of_answer(*found.own_, eos);
  }
  if (const auto* for_tools = templates.chosen(true); for_tools != source) try {
      found.for_tools_ = engine(*for_tools);
    } catch (const InputError& error) {  // told when a conversation needs it
      found.no_tools_ = error.what();
    }
  return found;
}

std::optional<std::string> ChatTemplate::jinja_of(const std::string& directory) {
  const FolderTemplates templates = FolderTemplates::read(directory);
  const FolderTemplates::Source* source = templates.chosen(false);
  return source ? std::optional(source->jinja) : std::nullopt;
}

const ConversationTemplate& ChatTemplate::engine_for(const ChatContext& context) const {
  if (context.tools && !no_tools_.empty()) throw InputError(no_tools_);
  return context.tools && for_tools_ ? *for_tools_ : *own_;
}

bool ChatTemplate::writes_all(const std::vector<Message>& messages, const ChatContext& context) const {
  if (name_ == "jinja" || &engine_for(context) != own_.get() || says_more_than_texts(messages, context)) return false;
  if (name_ == "llama-2" || name_ == "alpaca") require_turns(messages, name_);
  return true;
}

RenderedChat ChatTemplate::render(const std::vector<Message>& messages, const ChatContext& context) const {
  const ConversationTemplate& engine = engine_for(context);
  if (writes_all(messages, context)) return render_answers(engine, messages, context);
  const std::vector<Message> taken = as_taken(engine, messages, context);
  require_written(engine, taken, context);
  return render_answers(engine, taken, context);
}

std::string ChatTemplate::prompt(const std::vector<Message>& messages, const ChatContext& context) const {
  const ConversationTemplate& engine = engine_for(context);
  if (writes_all(messages, context)) return render_prompt(engine, messages, context);
  const std::vector<Message> taken = as_taken(engine, messages, context);
  require_written(engine, taken, context, /*prompt=*/true);
  return render_prompt(engine, taken, context);
}

bool ChatTemplate::reads(const std::string& key, const std::vector<Message>& messages,
                         const ChatContext& context) const {
  const ConversationTemplate& engine = context.tools && for_tools_ ? *for_tools_ : *own_;
  return engine.mentions(key) && reads_key(engine, messages, context, key);
}

bool write_alike(const ChatTemplate& a, const ChatTemplate& b) {
  const std::vector<Message> turn{{"user", "Who?"}, {"assistant", "Nobody."}},
      two{{"user", "Who?"}, {"assistant", "Nobody."}, {"user", "Why?"}, {"assistant", "Well."}},
      system{{"system", "Be brief."}, {"user", "Who?"}, {"assistant", "Nobody."}};
  const auto written = [](const ChatTemplate& by, const std::vector<Message>& messages) -> std::optional<std::string> {
    try {
      return by.render(messages).text;
    } catch (const InputError&) {
      return std::nullopt;
    }
  };
  for (const auto* messages : {&turn, &two, &system})
    if (written(a, *messages) != written(b, *messages)) return false;
  return true;
}

}  // namespace zero
