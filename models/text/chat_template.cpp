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
#include "models/text/jinja/values/characters.h"
#include "models/text/known_chat_templates.h"
#include "models/text/tokenizer.h"

namespace zero {
namespace {

constexpr std::string_view system_open = "<|im_start|>system\n", system_close = "<|im_end|>\n";

std::string_view strip(std::string_view text) { return jinja::strip_back(jinja::strip_front(text)); }

std::vector<Message> as_taken(const ConversationTemplate& engine, const std::vector<Message>& messages,
                              const ChatContext& context) {
  return with_arguments_as_taken(engine, with_parts_as_taken(engine, messages, context), context);
}

// Text under construction, with the spans that are trained.
class Writer {
 public:
  template <class... Pieces>
  Writer& add(const Pieces&... pieces) {
    (chat_.text.append(pieces), ...);
    return *this;
  }
  template <class... Pieces>
  Writer& answer(const Pieces&... pieces) {
    const std::size_t begin = chat_.text.size();
    add(pieces...);
    chat_.trained.push_back({begin, chat_.text.size()});
    return *this;
  }
  // What a message says: trained when the assistant wrote it and nobody said otherwise.
  template <class... Pieces>
  Writer& said(const Message& message, const Pieces&... pieces) {
    return message.role == "assistant" && message.trained.value_or(true) ? answer(pieces...) : add(pieces...);
  }
  RenderedChat take() { return std::move(chat_); }

 private:
  RenderedChat chat_;
};

bool starts_with_system(const std::vector<Message>& messages) {
  return !messages.empty() && messages[0].role == "system";
}

// The messages after a leading system message, which must alternate user, assistant, user, ...
std::vector<Message> alternating_turns(const std::vector<Message>& messages, const std::string& name) {
  std::vector<Message> turns(messages.begin() + starts_with_system(messages), messages.end());
  for (std::size_t i = 0; i < turns.size(); ++i) {
    const char* expected = i % 2 == 0 ? "user" : "assistant";
    if ((turns[i].role == "user") == (i % 2 == 0)) continue;
    throw InputError(text("message ", i + 1 + (messages.size() - turns.size()), " is of the ", turns[i].role,
                          " where the template ", name, " wants ", expected,
                          ": after an optional system message, user and assistant alternate"));
  }
  return turns;
}

RenderedChat write_zephyr(const std::vector<Message>& messages, const ChatTemplateSettings& settings, bool add_prompt) {
  Writer out;
  for (const Message& message : messages) {
    out.add("<|", message.role, "|>\n").said(message, message.content, settings.eos).add("\n");
  }
  if (add_prompt && !messages.empty()) out.add("<|assistant|>\n");
  return out.take();
}

RenderedChat write_llama2(const std::vector<Message>& messages, const ChatTemplateSettings& settings) {
  const std::vector<Message> turns = alternating_turns(messages, "llama-2");
  Writer out;
  for (std::size_t i = 0; i < turns.size(); ++i) {
    std::string content = turns[i].content;
    if (i == 0 && starts_with_system(messages))
      content = text("<<SYS>>\n", messages[0].content, "\n<</SYS>>\n\n", content);
    if (turns[i].role == "user")
      out.add(settings.bos, "[INST] ", strip(content), " [/INST]");
    else if (turns[i].role == "assistant")
      out.add(" ").said(turns[i], strip(content), " ", settings.eos);
  }
  return out.take();
}

RenderedChat write_llama3(const std::vector<Message>& messages, const ChatTemplateSettings& settings, bool add_prompt) {
  Writer out;
  for (const Message& message : messages) {
    if (&message == messages.data()) out.add(settings.bos);
    out.add("<|start_header_id|>", message.role, "<|end_header_id|>\n\n")
        .said(message, strip(message.content), "<|eot_id|>");
  }
  if (add_prompt) out.add("<|start_header_id|>assistant<|end_header_id|>\n\n");
  return out.take();
}

RenderedChat write_chatml(const std::vector<Message>& messages, const ChatTemplateSettings& settings, bool add_prompt) {
  Writer out;
  if (settings.starts_with_bos) out.add(settings.bos);
  if (settings.default_system && !messages.empty() && !starts_with_system(messages))
    out.add(system_open, *settings.default_system, system_close);
  for (const Message& message : messages) {
    out.add("<|im_start|>", message.role, "\n").said(message, message.content, "<|im_end|>").add("\n");
  }
  if (add_prompt) out.add("<|im_start|>assistant\n");
  return out.take();
}

RenderedChat write_alpaca(const std::vector<Message>& messages, const ChatTemplateSettings& settings, bool add_prompt) {
  const std::vector<Message> turns = alternating_turns(messages, "alpaca");
  Writer out;
  out.add(settings.bos);
  if (starts_with_system(messages)) out.add(strip(messages[0].content), "\n\n");
  for (const Message& message : turns) {
    if (message.role == "user")
      out.add("### Instruction:\n", strip(message.content), "\n\n");
    else if (message.role == "assistant")
      out.add("### Response:\n").said(message, strip(message.content), settings.eos).add("\n\n");
  }
  if (add_prompt && !turns.empty() && turns.back().role == "user") out.add(settings.answer_prompt);
  return out.take();
}

// A ChatML source with its default system message cut out, and that message: words, not an expression that makes them.
std::pair<std::string, std::optional<std::string>> without_system(const std::string& canonical) {
  const std::size_t open = canonical.find(system_open);
  const std::size_t close = open == std::string::npos ? open : canonical.find(system_close, open);
  if (close == std::string::npos) return {canonical, std::nullopt};
  const std::size_t begin = open + system_open.size();
  if (canonical.substr(begin, close - begin).find(jinja_separator) != std::string::npos)
    return {canonical, std::nullopt};
  return {canonical.substr(0, begin) + "SYSTEM" + canonical.substr(close), canonical.substr(begin, close - begin)};
}

std::string list_of_names() {
  std::string list;
  for (const std::string& name : ChatTemplate::names()) list += (list.empty() ? "" : ", ") + name;
  return list;
}

// A token by its name: null in tokenizer_config.json is none; one that no file names is what transformers' LlamaTokenizer
// takes, but none where a tokenizer.json counts.
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

ChatTemplate::ChatTemplate(std::string name, std::string jinja, ChatTemplateSettings settings)
    : name_(std::move(name)), jinja_(std::move(jinja)), settings_(std::move(settings)) {
  for (const auto& [token, content] : {std::pair{"bos_token", settings_.bos}, std::pair{"eos_token", settings_.eos}})
    if (!content.empty()) tokens_.emplace_back(token, content);
  end_of_turn_ = name_ == "chatml" ? "<|im_end|>" : name_ == "llama-3" ? "<|eot_id|>" : settings_.eos;
  if (end_of_turn_.empty())
    throw InputError(
        text("the chat template ", name_,
             " ends answers with eos_token, but tokenizer_config.json names none: name it there, or another template"));
  if (settings_.bos.empty() && (settings_.starts_with_bos || name_.starts_with("llama-") || name_ == "alpaca"))
    throw InputError(text("the chat template ", name_,
                          " uses bos_token, but tokenizer_config.json names none: name it there, or another template"));
}

std::optional<ChatTemplate> ChatTemplate::known(const std::string& jinja, const std::string& bos,
                                                const std::string& eos) {
  const auto [source, default_system] = without_system(canonical_jinja(jinja));
  for (const KnownChatTemplate& known : known_chat_templates()) {
    if (canonical_jinja(known.jinja) != source) continue;
    ChatTemplateSettings settings{.bos = bos, .eos = eos, .default_system = default_system, .answer_prompt = {}};
    settings.starts_with_bos = known.jinja.starts_with("{{ bos_token }}");
    settings.answer_prompt = known.jinja.find("{{ '### Instruction:\n' }}") == std::string_view::npos
                                 ? "### Response:\n"
                                 : "### Instruction:\n";
    return ChatTemplate(std::string(known.name), jinja, std::move(settings));
  }
  return std::nullopt;
}

ChatTemplate ChatTemplate::recognise(const std::string& jinja, const std::string& bos, const std::string& eos,
                                     const std::string& place, const std::string& setting) {
  if (auto found = known(jinja, bos, eos)) return *std::move(found);
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
  ChatTemplate found = known(source->jinja, bos, eos).value_or(ChatTemplate());
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
  found.tokens_ = std::move(templates.tokens);
  return found;
}

std::optional<std::string> ChatTemplate::jinja_of(const std::string& directory) {
  const FolderTemplates templates = FolderTemplates::read(directory);
  const FolderTemplates::Source* source = templates.chosen(false);
  return source ? std::optional(source->jinja) : std::nullopt;
}

RenderedChat ChatTemplate::write(const std::vector<Message>& messages, bool add_prompt) const {
  for (const Message& message : messages)
    ZERO_CHECK(message.role == "system" || message.role == "user" || message.role == "assistant",
               "role " + message.role);
  if (name_ == "zephyr") return write_zephyr(messages, settings_, add_prompt);
  if (name_ == "llama-2") return write_llama2(messages, settings_);
  if (name_ == "llama-3") return write_llama3(messages, settings_, add_prompt);
  if (name_ == "chatml") return write_chatml(messages, settings_, add_prompt);
  return write_alpaca(messages, settings_, add_prompt);
}

/// What runs a conversation; nullptr where a known template writes it by hand.
std::shared_ptr<const ConversationTemplate> ChatTemplate::engine_for(const std::vector<Message>& messages,
                                                                     const ChatContext& context) const {
  if (context.tools && !no_tools_.empty()) throw InputError(no_tools_);
  if (context.tools && for_tools_) return for_tools_;
  if (own_ || !says_more_than_texts(messages, context)) return own_;
  return std::make_shared<const ConversationTemplate>(FolderTemplates::Source{jinja_, name_}, tokens_);
}

RenderedChat ChatTemplate::render(const std::vector<Message>& messages, const ChatContext& context) const {
  const auto engine = engine_for(messages, context);
  if (!engine) return write(messages, false);
  const std::vector<Message> taken = as_taken(*engine, messages, context);
  require_written(*engine, taken, context);
  return render_answers(*engine, taken, context);
}

std::string ChatTemplate::prompt(const std::vector<Message>& messages, const ChatContext& context) const {
  const auto engine = engine_for(messages, context);
  if (!engine) return write(messages, true).text;
  const std::vector<Message> taken = as_taken(*engine, messages, context);
  require_written(*engine, taken, context, /*prompt=*/true);
  return render_prompt(*engine, taken, context);
}

bool ChatTemplate::reads(const std::string& key, const std::vector<Message>& messages,
                         const ChatContext& context) const {
  const auto engine = context.tools && for_tools_ ? for_tools_ : own_;
  return engine && engine->mentions(key) && reads_key(*engine, messages, context, key);
}

}  // namespace zero
