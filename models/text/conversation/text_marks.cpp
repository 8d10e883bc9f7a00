#include "models/text/conversation/text_marks.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "base/log.h"
#include "models/text/conversation/conversation_request.h"
#include "models/text/jinja/values/characters.h"

namespace zero {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view mark_begin = "zq", mark_end = "mark";  // a number between them
constexpr std::size_t most_thoughts = 100;                        // that are marked in one text

/// Tags after which a template may split a content.
constexpr std::array<std::string_view, 7> thought_tags{"<think>", "<thinking>",           "<thought>",   "<reasoning>",
                                                       "[THINK]", "<|begin_of_thought|>", "<seed:think>"};

/// The length of the tags with which a text begins, including white space before each. 0 if there are none.
std::size_t opening_tags(std::string_view text) {
  for (std::size_t length = 0;;) {
    const std::size_t begin = text.find_first_not_of(" \t\r\n", length);
    if (begin == text.npos || (text[begin] != '<' && text[begin] != '[')) return length;
    const std::size_t end = text.find_first_of(text[begin] == '<' ? " \n>" : " \n]", begin);
    if (end == text.npos || text[end] == ' ' || text[end] == '\n') return length;
    length = end + 1;
  }
}

/// Returns the position of the text's closing tag, or the text's end if there is none.
std::size_t closing_tag(std::string_view text) {
  const std::size_t last = text.find_last_not_of(" \t\r\n");
  if (last == text.npos || (text[last] != '>' && text[last] != ']')) return text.size();
  const std::size_t begin = text.find_last_of(text[last] == '>' ? " \n<" : " \n[", last);
  return begin == text.npos || text[begin] == ' ' || text[begin] == '\n' ? text.size() : begin;
}

/// Returns the places of marks in a text. Empty thoughts need no mark.
std::set<std::size_t> places_in(std::string_view text) {
  const std::size_t first = opening_tags(text);
  std::set<std::size_t> places{first, std::max(closing_tag(text), first)};
  for (const std::string_view tag : thought_tags)
    for (std::size_t at = text.find(tag); at != text.npos && places.size() < most_thoughts; at = text.find(tag, at + 1))
      if (opening_tags(text.substr(at + tag.size())) == 0) places.insert(at + tag.size());
  return places;
}

}  // namespace

TextMarks::TextMarks(Json& request) {
  for (std::size_t i = 0; i < request["messages"].size(); ++i) mark_message(request["messages"][i], i);
  if (const auto tools = request.find("tools"); tools != request.end() && tools->is_array())
    for (std::size_t i = 0; i < tools->size(); ++i) mark_tool((*tools)[i], i);
}

void TextMarks::mark_message(Json& message, std::size_t number) {
  if (const auto content = message.find("content"); content != message.end()) mark_content(*content, number);
  if (const char* key = thought_key(message); key && message[key].is_string())
    mark_text(message[key], MarkedPart::thoughts, number);
  const std::vector<Json*> functions = called_functions(message);
  for (std::size_t call = 0; call < functions.size(); ++call) mark_call(*functions[call], number, call);
}

/// Empty arguments need no mark.
void TextMarks::mark_call(Json& function, std::size_t number, std::size_t call) {
  const Mark mark{MarkedPart::call, number, call};
  bool marked = mark_name(function, mark);
  if (const auto found = function.find("arguments"); found != function.end()) {
    const bool is_text = found->is_string();
    auto arguments = is_text ? object_of(found->get_ref<const std::string&>()) : std::optional<Json>(*found);
    if (arguments && arguments->is_object() && !arguments->empty()) {
      const std::string& word = next({mark.part, number, call, "arguments"});
      (*arguments)[word] = word;
      *found = is_text ? Json(arguments->dump(-1, ' ', false, Json::error_handler_t::replace)) : *std::move(arguments);
      marked = true;
    }
  }
  if (marked) return;
  const std::string& word = next(mark);
  function[word] = word;
}

/// Whether there is a name. The mark follows it.
bool TextMarks::mark_name(Json& function, const Mark& mark) {
  const auto name = function.find("name");
  if (name == function.end() || !name->is_string() || !says_something(*name)) return false;
  *name = name->get<std::string>() + next({mark.part, mark.number, mark.call, "name"});
  return true;
}

void TextMarks::mark_content(Json& content, std::size_t number) {
  if (content.is_string()) mark_text(content, MarkedPart::content, number);
  if (content.is_object()) {
    const std::string& word = next({MarkedPart::content, number});
    content[word] = word;
  }
  if (!content.is_array()) return;
  for (Json& part : content)
    if (part.is_object() && part.contains("text") && part["text"].is_string())
      mark_text(part["text"], MarkedPart::content, number);
}

void TextMarks::mark_text(Json& text, MarkedPart part, std::size_t number) {
  const std::string whole = text.get<std::string>();
  const std::string_view view = whole;
  if (jinja::strip_front(view).empty()) return;
  std::string marked;
  std::size_t done = 0;
  for (const std::size_t place : places_in(view)) {
    marked.append(view.substr(done, place - done))
        .append(" ")
        .append(next({part, number}, view.substr(place)))
        .append(" ");
    done = place;
  }
  text = marked.append(view.substr(done));
}

void TextMarks::mark_tool(Json& tool, std::size_t number) {
  if (!tool.is_object()) return;
  Json& function = function_of(tool);
  const Mark mark{MarkedPart::tool, number};
  mark_name(function, mark);
  const auto description = function.find("description");
  if (description != function.end() && description->is_string() && says_something(*description))
    *description = next({mark.part, number, 0, "description"}) + " " + description->get<std::string>();
  const auto parameters = function.find("parameters");
  if (parameters == function.end() || !parameters->is_object()) return;
  const auto properties = parameters->find("properties");
  if (properties == parameters->end() || !properties->is_object() || properties->empty()) return;
  const std::string& word = next({mark.part, number, 0, "parameters"});
  (*properties)[word] = {{"type", "string"}, {"description", word}};
}

const std::string& TextMarks::next(Mark mark, std::string_view behind) {
  behind = jinja::strip_front(behind);
  mark.word = text(mark_begin, marks_.size(), mark_end);
  mark.beside = behind.substr(0, jinja::byte_of(behind.substr(0, 200), 40));
  marks_.push_back(std::move(mark));
  return marks_.back().word;
}

std::vector<Mark> TextMarks::missing_in(std::string_view text) const {
  std::string small(text);
  for (char& c : small)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  std::vector<bool> found(marks_.size());
  for (std::size_t at = small.find(mark_begin); at != small.npos; at = small.find(mark_begin, at + 1)) {
    std::size_t number = 0;
    const auto [end, error] =
        std::from_chars(small.data() + at + mark_begin.size(), small.data() + small.size(), number);
    if (error == std::errc() && number < found.size() &&
        std::string_view(end, small.data() + small.size()).starts_with(mark_end))
      found[number] = true;
  }
  std::vector<Mark> missing;
  for (std::size_t i = 0; i < marks_.size(); ++i)
    if (!found[i]) missing.push_back(marks_[i]);
  return missing;
}

}  // namespace zero
