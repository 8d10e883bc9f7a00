#include "models/text/conversation/lost_text.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "base/quoted.h"
#include "models/text/conversation/conversation_request.h"
#include "models/text/conversation/text_marks.h"
#include "models/text/jinja/values/characters.h"

namespace zero {
namespace {

using Json = nlohmann::ordered_json;

std::string small_letters(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

std::string_view stripped(std::string_view text) { return jinja::strip_back(jinja::strip_front(text)); }

[[noreturn]] void refuse_loss(const std::string& what, const std::string& remedy = "take it out of the data") {
  throw InputError(text(what, " would be lost: the chat template does not write it; ", remedy,
                        ", or name a template that writes it"));
}

class LossSearch {
 public:
  LossSearch(const ConversationTemplate& chat, const std::vector<Message>& messages, const ChatContext& context,
             bool prompt)
      : chat_(chat),
        messages_(messages),
        prompt_(prompt),
        request_(conversation_request(messages, messages.size(), context, prompt)) {}

  void refuse_losses() {
    marked_ = request_;
    const TextMarks marks(marked_);
    const auto text = text_of(chat_, marked_);
    const std::vector<Mark> missing = text ? marks.missing_in(*text) : std::vector<Mark>();
    if (missing.empty() && !request_.contains("tools") && !request_.contains("variables")) return;
    const auto whole = text_of(chat_, request_);
    if (!whole) return;
    whole_ = *whole;
    refuse_lost_context();
    for (const Mark& mark : missing) {
      if (mark.part == MarkedPart::tool)
        refuse_loss_of_tool(mark);
      else if (messages_[mark.number].role != "assistant" || (!prompt_ && is_missing_at_the_end(marks, mark)))
        refuse_loss_of(mark);
    }
  }

 private:
  bool changes(const Json& request) const { return text_of(chat_, request) != whole_; }

  /// Tools and variables.
  void refuse_lost_context() const {
    if (const auto tools = request_.find("tools"); tools != request_.end() && says_something(*tools)) {
      Json without = request_;
      without["tools"] = nullptr;
      if (!changes(without)) refuse_loss("\"tools\"");
    }
    const auto variables = request_.find("variables");
    if (variables == request_.end()) return;
    for (const auto& [name, value] : variables->items()) {
      if (!says_something(value) || chat_.mentions(name)) continue;  // one that is named may have its default value
      Json without = request_;
      without["variables"].erase(name);
      if (!changes(without)) refuse_loss(text("\"chat_template_kwargs\": \"", name, "\""));
    }
  }

  void refuse_loss_of_tool(const Mark& mark) const {
    const std::string_view key = mark.key;
    Json other = request_;
    Json& function = function_of(other["tools"][mark.number]);
    if (key == "name") function[mark.key] = mark.word;
    if (key == "parameters") function.erase(mark.key);
    if (key == "description" || !changes(other))
      refuse_loss(text("\"tools\": the ", key, " of tool ", mark.number + 1));
  }

  /// True if the template also omits a mark when its message is the last one.
  bool is_missing_at_the_end(const TextMarks& marks, const Mark& mark) {
    if (mark.number + 1 == messages_.size()) return true;
    if (last_ != mark.number) {
      last_ = mark.number;
      Json first = marked_;
      Json& shown = first["messages"];
      shown.erase(shown.begin() + static_cast<std::ptrdiff_t>(mark.number) + 1, shown.end());
      const auto text = text_of(chat_, first);
      missing_ = text ? marks.missing_in(*text) : std::vector<Mark>();
    }
    return std::any_of(missing_.begin(), missing_.end(), [&](const Mark& other) { return other.word == mark.word; });
  }

  /// Marks may change what a template does, so each loss is confirmed without them.
  void refuse_loss_of(const Mark& mark) const {
    const std::string place = text("message ", mark.number + 1, ": ");
    if (mark.part == MarkedPart::call) return refuse_loss_of_call(mark, place);
    Json other = request_;
    Json& message = other["messages"][mark.number];
    const char* key = mark.part == MarkedPart::thoughts ? thought_key(message) : "content";
    const Json said = std::exchange(message[key], mark.word);
    if (changes(other)) {  // it is looked at: then a part of it may be missing
      const bool is_text = said.is_string() || said.is_array();
      const std::string words = said.is_string() ? said.get<std::string>() : messages_[mark.number].content;
      if (!is_text || small_letters(whole_).find(stripped(small_letters(words))) != whole_.npos) return;
    }
    if (mark.part == MarkedPart::thoughts) refuse_loss(place + "the thoughts (reasoning_content, thinking)");
    refuse_loss_of_content(mark, said);
  }

  void refuse_loss_of_call(const Mark& mark, const std::string& place) const {
    Json other = request_;
    Json& message = other["messages"][mark.number];
    message.erase("tool_calls");
    if (!changes(other)) refuse_loss(place + "\"tool_calls\"");
    message = request_["messages"][mark.number];
    Json& calls = message["tool_calls"];
    std::string call = "\"tool_calls\"";
    if (calls.size() > 1) {
      call = text("call ", mark.call + 1, " of ", call);
      calls.erase(mark.call);
      if (!changes(other)) refuse_loss(place + call);
      calls = request_["messages"][mark.number]["tool_calls"];
    }
    if (!*mark.key) return;
    Json& value = (*called_functions(message)[mark.call])[mark.key];
    const Json arguments{{mark.word, mark.word}};
    const bool is_name = std::string_view(mark.key) == "name";
    value = is_name ? Json(mark.word) : value.is_string() ? Json(arguments.dump()) : arguments;
    if (!changes(other)) refuse_loss(text(place, "the ", mark.key, " of ", call));
  }

  [[noreturn]] void refuse_loss_of_content(const Mark& mark, const Json& content) const {
    const std::string& role = messages_[mark.number].role;
    const std::string what = text("message ", mark.number + 1, ": what the ", role, " says",
                                  mark.beside.empty() ? "" : text(", from ", json_quoted(mark.beside), " on,"));
    if (content.is_string() && writes_parts(mark.number))
      refuse_loss(what, "give \"content\" as [{\"type\": \"text\", \"text\": ...}], which it does write");
    refuse_loss(what, role == "system" ? "put it into the first question" : "take it out of the data");
  }

  /// True if the message would be written if all contents were lists of parts. A list that is written as one is not.
  bool writes_parts(std::size_t number) const {
    Json parts = request_;
    for (Json& message : parts["messages"])
      if (const auto content = message.find("content"); content != message.end() && content->is_string())
        *content = Json::array({{{"type", "text"}, {"text", *content}}});
    const TextMarks marks(parts);
    const auto text = text_of(chat_, parts);
    if (!text || text->find("'type': 'text'") != text->npos || text->find(R"("type": "text")") != text->npos)
      return false;
    const std::vector<Mark> missing = marks.missing_in(*text);
    return std::none_of(missing.begin(), missing.end(),
                        [&](const Mark& mark) { return mark.number == number && mark.part == MarkedPart::content; });
  }

  const ConversationTemplate& chat_;
  const std::vector<Message>& messages_;
  const bool prompt_;
  const Json request_;
  std::string whole_;
  Json marked_;
  std::optional<std::size_t> last_;  // the message up to which the conversation was rendered
  std::vector<Mark> missing_;        // marks that the text lacks
};

}  // namespace

bool writes_contents(const ConversationTemplate& chat, const Json& request) {
  Json marked = request;
  const TextMarks marks(marked);
  const auto text = text_of(chat, marked);
  if (!text) return false;
  const auto contents = [](const std::vector<Mark>& of) {
    std::map<std::size_t, int> count;  // by message
    for (const Mark& mark : of) count[mark.number] += mark.part == MarkedPart::content;
    return count;
  };
  const auto all = contents(marks.all()), missing = contents(marks.missing_in(*text));
  return std::all_of(all.begin(), all.end(), [&](const auto& each) {
    const auto lost = missing.find(each.first);
    return each.second == 0 || lost == missing.end() || lost->second < each.second;
  });
}

void require_written(const ConversationTemplate& chat, const std::vector<Message>& messages, const ChatContext& context,
                     bool prompt) {
  LossSearch(chat, messages, context, prompt).refuse_losses();
}

bool reads_key(const ConversationTemplate& chat, const std::vector<Message>& messages, const ChatContext& context,
               const std::string& key) {
  Json request = conversation_request(messages, messages.size(), context, false);
  const auto with = text_of(chat, request);
  for (Json& message : request["messages"]) message.erase(key);
  return !with || text_of(chat, request) != with;
}

}  // namespace zero
