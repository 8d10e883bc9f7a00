#pragma once
// TinyLlama's tokenizer, and chats with one question and one answer.
#include <nlohmann/json.hpp>
#include <string>

#include "models/text/tokenizer.h"
#include "zero/data/examples/conversation_encoder.h"

namespace zero {

inline const std::string model = std::string(ZERO_TEST_DATA) + "/tinyllama-chat";

inline const Tokenizer& tokenizer() {
  static const Tokenizer loaded = Tokenizer::load(model);
  return loaded;
}

inline std::string chat(const std::string& question, const std::string& answer) {
  return nlohmann::json{
             {"messages", {{{"role", "user"}, {"content", question}}, {{"role", "assistant"}, {"content", answer}}}}}
             .dump() +
         "\n";
}

inline ConversationEncoder encoder(TrainOn train_on = TrainOn::assistant) {
  return {tokenizer(), {model, "", train_on}};
}

}  // namespace zero
