#include "models/text/conversation/answer_spans.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/log.h"
#include "models/text/conversation/conversation_request.h"
#include "models/text/jinja/error.h"
#include "models/text/jinja/values/characters.h"

namespace zero {
namespace {

/// A conversation through a template.
struct Talk {
  const ConversationTemplate& chat;
  const std::vector<Message>& messages;
  const ChatContext& context;
};

ConversationText render(const Talk& talk, std::size_t count, bool prompt) {
  const auto has_more = [](const Message& message) { return message.whole != nullptr; };
  const bool texts = count > 0 && !talk.context.tools && !talk.context.variables &&
                     std::none_of(talk.messages.begin(), talk.messages.end(), has_more);
  try {
    if (texts) return talk.chat.render(talk.messages, count, prompt);
    return talk.chat.render(conversation_request(talk.messages, count, talk.context, prompt));
  } catch (const jinja::TemplateError& error) {
    throw InputError(described(error));
  }
}

bool is_trained(const Message& message) { return message.role == "assistant" && message.trained.value_or(true); }

/// Returns the spans of generation blocks. Messages that the data exclude from training are skipped, by their order.
std::vector<TextSpan> generated_spans(const ConversationText& whole, const std::vector<Message>& messages) {
  std::vector<TextSpan> spans;
  for (const auto& span : whole.generated_bytes) spans.push_back({span.begin, span.end});
  std::vector<bool> trained;
  for (const Message& message : messages)
    if (message.role == "assistant") trained.push_back(is_trained(message));
  if (std::find(trained.begin(), trained.end(), true) == trained.end()) return {};
  if (!whole.generated_in_place)
    throw InputError(
        "a {% generation %} block of the chat template stands inside a set, filter or macro block, so the text that is "
        "trained would not be the one that it wrote: put the block around what is written out");
  if (std::find(trained.begin(), trained.end(), false) != trained.end()) {
    if (trained.size() != spans.size())
      throw InputError(text("some messages are said not to be trained, but the template's ", spans.size(),
                            " generation blocks do not tell which of the ", trained.size(), " answers they belong to"));
    for (std::size_t i = 0; i < spans.size(); ++i)
      if (!trained[i]) spans[i].end = spans[i].begin;
  }
  std::sort(spans.begin(), spans.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
  std::erase_if(spans, [](const TextSpan& span) { return span.begin == span.end; });
  return spans;
}

[[noreturn]] void refuse_answer(std::size_t i, const std::string& why) {
  throw InputError(text(
      "message ", i + 1, ": where this answer stands in the conversation's text cannot be told: ", why,
      "; a template with {% generation %} blocks says it, or give data whose last answer alone is trained (\"train\": false for the others)"));
}

/// Phi-3's template ends everything but a prompt with EOS. The first messages of a longer conversation are written
/// without it.
void take_final_eos(std::string& first, std::string_view eos) {
  if (!eos.empty() && first.ends_with(eos)) first.resize(first.size() - eos.size());
}

/// If the answer is at `begin` word for word, followed by the text that ends it, returns the span to the end. Otherwise
/// returns nothing. Qwen 3's template writes the last answer of a text with (empty) thoughts, and the same answer
/// without them if more follows.
std::optional<TextSpan> span_of_words(const Talk& talk, const std::string& content, const std::string& whole,
                                      std::size_t begin) {
  const std::string mark = end_of_answer(talk.chat, std::string(talk.chat.token("eos_token")));
  std::string_view rest = jinja::strip_front(std::string_view(whole).substr(begin));
  for (const std::string_view part : {jinja::strip_back(jinja::strip_front(content)), std::string_view(mark)}) {
    if (part.empty() || !rest.starts_with(part)) return std::nullopt;
    rest = jinja::strip_front(rest.substr(part.size()));
  }
  return TextSpan{begin, jinja::strip_back(std::string_view(whole).substr(0, whole.size() - rest.size())).size()};
}

/// From the prompt for answer i to the answer's end, without trailing white space. If the template has no such prompt,
/// leading white space is excluded too.
TextSpan answer_span(const Talk& talk, std::size_t i, const std::string& whole) {
  if (i == 0) refuse_answer(i, "the conversation begins with it");
  std::string before, bare, after;
  try {
    before = render(talk, i, true).text;
    bare = render(talk, i, false).text;
    after = i + 1 == talk.messages.size() ? whole : render(talk, i + 1, false).text;
  } catch (const InputError& error) {
    refuse_answer(i, text("the messages up to it alone give: ", error.what()));
  }
  if (!whole.starts_with(before))
    refuse_answer(i, "the template writes the messages before it and the prompt otherwise than the whole begins");
  if (!whole.starts_with(after)) take_final_eos(after, talk.chat.token("eos_token"));
  if (!whole.starts_with(after))
    if (const auto words = span_of_words(talk, talk.messages[i].content, whole, before.size())) return *words;
  if (!whole.starts_with(after))
    refuse_answer(i, "the template writes the messages up to it otherwise than the whole begins");
  std::string_view answer =
      std::string_view(whole).substr(0, std::max(before.size(), after.size())).substr(before.size());
  answer = jinja::strip_back(answer);
  if (before == bare) answer = jinja::strip_front(answer);
  const auto begin = answer.empty() ? before.size() : static_cast<std::size_t>(answer.data() - whole.data());
  return {begin, begin + answer.size()};
}

}  // namespace

RenderedChat render_answers(const ConversationTemplate& chat, const std::vector<Message>& messages,
                            const ChatContext& context) {
  const Talk talk{chat, messages, context};
  ConversationText whole = render(talk, messages.size(), false);
  RenderedChat rendered;
  if (whole.generated) {
    rendered.trained = generated_spans(whole, messages);
  } else {
    for (std::size_t i = 0; i < messages.size(); ++i)
      if (is_trained(messages[i]))
        if (const TextSpan span = answer_span(talk, i, whole.text); span.begin < span.end)
          rendered.trained.push_back(span);
  }
  rendered.text = std::move(whole.text);
  return rendered;
}

std::string render_prompt(const ConversationTemplate& chat, const std::vector<Message>& messages,
                          const ChatContext& context) {
  return render({chat, messages, context}, messages.size(), true).text;
}

std::string end_of_answer(const ConversationTemplate& chat, const std::string& eos) {
  static constexpr std::string_view probe = "zero7answer3probe";
  const std::vector<Message> talk{{"user", "a"}, {"assistant", std::string(probe)}};
  const ChatContext none;
  std::string text;
  try {
    text = render({chat, talk, none}, talk.size(), false).text;
  } catch (const InputError&) {  // told when a conversation needs it
    return eos;
  }
  const std::size_t at = text.rfind(probe);
  if (at == std::string::npos) return eos;
  const std::string_view rest = jinja::strip_front(std::string_view(text).substr(at + probe.size()));
  std::string mark(rest.substr(0, rest.find_first_of(" \t\r\n")));
  if (!eos.empty() && mark.size() > eos.size() && mark.ends_with(eos)) mark.resize(mark.size() - eos.size());
  return mark.empty() ? eos : mark;
}

}  // namespace zero
