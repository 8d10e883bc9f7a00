#pragma once
// Marks: words that occur nowhere else, put into all that a conversation says, by which is seen what of it comes through.
// No LibTorch.
#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace zero {

/// What of a request a mark stands and falls with.
enum class MarkedPart : std::uint8_t { content, thoughts, call, arguments, description };

struct Mark {
  MarkedPart part;
  std::size_t number;       // of the message, or of the tool that has the description
  std::string word = {};    // in small letters
  std::string beside = {};  // the beginning of the text behind it
};

class TextMarks {
 public:
  /// Puts marks into a request for ConversationTemplate::render: at both ends of each content and thought, inside of tags
  /// that stand there, and where thoughts begin inside of a content; into calls, or their arguments where these are an
  /// object; before the descriptions of tools.
  explicit TextMarks(nlohmann::ordered_json& request);

  const std::vector<Mark>& all() const { return marks_; }
  /// Those that a text lacks, whatever it did to their case.
  std::vector<Mark> missing_in(std::string_view text) const;

 private:
  void mark_message(nlohmann::ordered_json& message, std::size_t number);
  void mark_content(nlohmann::ordered_json& content, std::size_t number);
  void mark_text(nlohmann::ordered_json& text, MarkedPart part, std::size_t number);
  void mark_tool(nlohmann::ordered_json& tool, std::size_t number);
  const std::string& next(MarkedPart part, std::size_t number, std::string_view behind = "");

  std::vector<Mark> marks_;
};

}  // namespace zero
