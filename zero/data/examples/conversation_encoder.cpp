#include "zero/data/examples/conversation_encoder.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/files/lookup.h"
#include "base/log.h"
#include "models/text/tokenizer.h"

namespace zero {
namespace {

// Returns 1 for every token that shares a byte with a trained span. Spans and tokens are in ascending order.
std::vector<std::uint8_t> mask_of(const std::vector<TextSpan>& tokens, const std::vector<TextSpan>& trained) {
  std::vector<std::uint8_t> mask(tokens.size(), 0);
  std::size_t span = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    while (span < trained.size() && trained[span].end <= tokens[i].begin) ++span;
    mask[i] = span < trained.size() && trained[span].begin < tokens[i].end && tokens[i].begin < tokens[i].end;
  }
  return mask;
}

using Ids = std::vector<std::int32_t>;

bool starts_with(const Ids& ids, const Ids& opening) {
  return ids.size() >= opening.size() && std::equal(opening.begin(), opening.end(), ids.begin());
}
bool ends_with(const Ids& ids, const Ids& closing) {
  return ids.size() >= closing.size() && std::equal(closing.rbegin(), closing.rend(), ids.rbegin());
}

/// True if the last token of a span is special; white space after it does not count.
bool ends_with_special(const ChatTokenizer& tokenizer, std::string_view text, const TokenizedText& tokens,
                       const TextSpan& span) {
  for (std::size_t i = tokens.spans.size(); i-- > 0;) {
    const TextSpan& token = tokens.spans[i];
    if (token.begin >= span.end || token.begin == token.end) continue;
    const std::string_view piece = text.substr(token.begin, token.end - token.begin);
    if (tokenizer.special(piece) == tokens.ids[i]) return token.end > span.begin;
    if (token.begin < span.begin || piece.find_first_not_of(" \t\r\n") != piece.npos) return false;
  }
  return false;
}

// Checks that the run can honour the messages' training flags.
void require_possible_flags(const Example& example, TrainOn train_on) {
  for (std::size_t i = 0; i < example.messages.size(); ++i) {
    const Message& message = example.messages[i];
    const bool all = train_on == TrainOn::all;
    if (all ? message.trained != false : message.role == "assistant" || message.trained != true) continue;
    throw InputError(text(example.place, ": message ", i + 1, " of the ", message.role, " says that it is ",
                          all ? "not " : "", "trained (weight, train), but data.train_on = ",
                          all ? "\"all\" trains every message" : "\"assistant\" trains the assistant's messages only",
                          ": change the one or the other"));
  }
}

}  // namespace

TrainOn train_on_of(const std::string& name) {
  if (name == "assistant") return TrainOn::assistant;
  if (name == "all") return TrainOn::all;
  throw InputError(text("data.train_on = \"", name, "\" is not known: it is assistant or all"));
}

ConversationEncoder::ConversationEncoder(const Tokenizer& tokenizer, EncoderOptions options)
    : options_(std::move(options)),
      tokenizer_(tokenizer, options_.model_directory),
      opening_(tokenizer.opening()),
      closing_(tokenizer.closing()) {
  try {
    template_ = ChatTemplate::load(options_.model_directory, options_.chat_template, options_.template_setting);
  } catch (const UnreadableError&) {
    throw;
  } catch (const InputError& error) {
    if (!options_.chat_template.empty()) refuse_template(error.what());
    no_template_ = error.what();
    return;
  }
  const std::string& mark = template_->end_of_turn();
  if (tokenizer_.special(mark)) return;
  no_template_ = text(
      "the chat template ", template_->said(), " ends an answer with ", mark.empty() ? "nothing" : mark,
      ", which is no special token of ", tokenizer.model_path(),
      ": template and tokenizer do not fit; set data.chat_template to one of those that do, or name the tokenizer that the template belongs to");
  if (!options_.chat_template.empty()) refuse_template(no_template_);
  template_.reset();  // reported when a conversation needs it
}

void ConversationEncoder::refuse_template(const std::string& why) const {
  throw InputError(options_.template_place.empty() ? why : options_.template_place + ": " + why);
}

const ChatTemplate& ConversationEncoder::chat_template() const {
  if (!template_) refuse_template(no_template_);
  return *template_;
}

EncodedExample ConversationEncoder::encode(const Example& example) const {
  EncodedExample encoded = example.kind == Example::Kind::chat ? encode_chat(example) : encode_plain(example);
  if (options_.train_on == TrainOn::all) std::fill(encoded.trained.begin(), encoded.trained.end(), std::uint8_t{1});
  if (!encoded.trained.empty()) encoded.trained[0] = 0;
  encoded.place = example.place;
  encoded.kind = example.kind;
  return encoded;
}

EncodedExample ConversationEncoder::encode_chat(const Example& example) const {
  const ChatTemplate& chat = chat_template();
  require_possible_flags(example, options_.train_on);
  std::vector<Message> messages = example.messages;
  if (options_.train_on == TrainOn::all)  // the answers' positions are not needed
    for (Message& message : messages) message.trained = false;
  RenderedChat rendered;
  try {
    rendered = chat.render(messages, example.context);
  } catch (const InputError& error) {
    throw InputError(text(example.place, ": ", error.what()));
  }
  TokenizedText tokens = tokenizer_.encode(rendered.text);
  EncodedExample encoded;
  encoded.trained = mask_of(tokens.spans, rendered.trained);
  std::vector<TextSpan> answers = rendered.trained;
  if (options_.train_on == TrainOn::all && messages.back().role == "assistant")
    answers = {{0, rendered.text.size()}};  // up to the end of the last answer
  std::erase_if(answers, [](const TextSpan& answer) { return answer.begin == answer.end; });
  encoded.unended = !answers.empty() && !ends_with_special(tokenizer_, rendered.text, tokens, answers.back());
  encoded.text = std::move(rendered.text);
  encoded.ids = std::move(tokens.ids);
  return encoded;
}

// BOS + text + EOS, like a tokenizer that adds its marks. BOS and EOS that the text already contains are not repeated.
EncodedExample ConversationEncoder::encode_plain(const Example& example) const {
  EncodedExample encoded;
  encoded.text = example.prompt + example.text;
  const TokenizedText tokens = tokenizer_.encode(encoded.text);
  const std::vector<std::uint8_t> mask = mask_of(tokens.spans, {{example.prompt.size(), encoded.text.size()}});
  const auto add = [&](std::int32_t id, std::uint8_t trained) {
    encoded.ids.push_back(id);
    encoded.trained.push_back(trained);
  };
  if (!starts_with(tokens.ids, opening_))
    for (const std::int32_t id : opening_) add(id, 0);
  for (std::size_t i = 0; i < mask.size(); ++i) add(tokens.ids[i], mask[i]);
  if (!ends_with(tokens.ids, closing_))
    for (const std::int32_t id : closing_) add(id, 1);
  const TextSpan answer{example.prompt.size(), encoded.text.size()};
  encoded.unended =
      closing_.empty() && answer.begin < answer.end && !ends_with_special(tokenizer_, encoded.text, tokens, answer);
  return encoded;
}

std::vector<std::int32_t> ConversationEncoder::encode_prompt(const Example& completion) const {
  std::vector<std::int32_t> ids = tokenizer_.encode(completion.prompt).ids;
  if (!starts_with(ids, opening_)) ids.insert(ids.begin(), opening_.begin(), opening_.end());
  return ids;
}

}  // namespace zero
