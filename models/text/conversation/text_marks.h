#pragma once
// Marks: unique words that are inserted into every text of a conversation, to see which parts reach the result. Does
// not include LibTorch.
#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace zero {

/// The part of a request to which a mark belongs.
enum class MarkedPart : std::uint8_t { content, thoughts, call, tool };

struct Mark {
  MarkedPart part;
  std::size_t number;       // of the message, or of the tool
  std::size_t call = 0;     // of the message's "tool_calls"
  const char* key = "";     // key in function_of() the call or the tool; "": the call itself
  std::string word = {};    // in lower case
  std::string beside = {};  // the beginning of the text after the mark
};

class TextMarks {
 public:
  /// Inserts marks into a request for ConversationTemplate::render. Each content and thought gets marks at both ends
  /// (inside any tags there), and thoughts within a content get one at their start. A call gets marks in its name and
  /// arguments. A tool gets marks in its name, description and parameters.
  explicit TextMarks(nlohmann::ordered_json& request);

  const std::vector<Mark>& all() const { return marks_; }
  /// The marks that a text lacks, ignoring case.
  std::vector<Mark> missing_in(std::string_view text) const;

 private:
  void mark_message(nlohmann::ordered_json& message, std::size_t number);
  void mark_content(nlohmann::ordered_json& content, std::size_t number);
  void mark_text(nlohmann::ordered_json& text, MarkedPart part, std::size_t number);
  void mark_call(nlohmann::ordered_json& function, std::size_t number, std::size_t call);
  void mark_tool(nlohmann::ordered_json& tool, std::size_t number);
  bool mark_name(nlohmann::ordered_json& function, const Mark& mark);
  const std::string& next(Mark mark, std::string_view behind = "");

  std::vector<Mark> marks_;
};

}  // namespace zero
