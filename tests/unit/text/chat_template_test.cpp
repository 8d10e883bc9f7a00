#include "models/text/chat_template.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/error.h"
#include "models/text/known_chat_templates.h"
#include "tests/unit/message_of.h"
#include "tests/unit/text/trained_texts.h"

namespace zero {
namespace chat_template_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::vector<Message> talk = {
    {"system", " Be terse. "}, {"user", " Hi\n"}, {"assistant", "Yo "}, {"user", "More?"}};

ChatTemplate named(const std::string& name) { return ChatTemplate::named(name, "<s>", "</s>"); }

TEST(ChatTemplate, RendersEachKnownTemplate) {
  EXPECT_EQ(
      named("zephyr").prompt(talk),
      "<|system|>\n Be terse. </s>\n<|user|>\n Hi\n</s>\n<|assistant|>\nYo </s>\n<|user|>\nMore?</s>\n<|assistant|>\n");
  EXPECT_EQ(named("llama-2").prompt(talk),
            "<s>[INST] <<SYS>>\n Be terse. \n<</SYS>>\n\n Hi [/INST] Yo </s><s>[INST] More? [/INST]");
  EXPECT_EQ(
      named("llama-3").prompt(talk),
      "<s><|start_header_id|>system<|end_header_id|>\n\nBe terse.<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>"
      "<|start_header_id|>assistant<|end_header_id|>\n\nYo<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nMore?<|eot_id|>"
      "<|start_header_id|>assistant<|end_header_id|>\n\n");
  EXPECT_EQ(
      named("chatml").prompt(talk),
      "<|im_start|>system\n Be terse. <|im_end|>\n<|im_start|>user\n Hi\n<|im_end|>\n<|im_start|>assistant\nYo <|im_end|>\n"
      "<|im_start|>user\nMore?<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_EQ(
      named("alpaca").prompt(talk),
      "<s>Be terse.\n\n### Instruction:\nHi\n\n### Response:\nYo</s>\n\n### Instruction:\nMore?\n\n### Response:\n");
}

TEST(ChatTemplate, TrainsAnswersWithTheMarkThatEndsThem) {
  EXPECT_THAT(trained_texts(named("zephyr").render(talk)), ElementsAre("Yo </s>"));
  EXPECT_THAT(trained_texts(named("llama-2").render(talk)), ElementsAre("Yo </s>"));
  EXPECT_THAT(trained_texts(named("llama-3").render(talk)), ElementsAre("Yo<|eot_id|>"));
  EXPECT_THAT(trained_texts(named("chatml").render(talk)), ElementsAre("Yo <|im_end|>"));
  EXPECT_THAT(trained_texts(named("alpaca").render(talk)), ElementsAre("Yo</s>"));
}

TEST(ChatTemplate, StripsAsPythonDoes) {
  EXPECT_THAT(
      trained_texts(named("alpaca").render({{"user", "x"}, {"assistant", "\u3000\u00a0\x1c a \u200b\u2029\n"}})),
      ElementsAre("a \u200b</s>"));
}

TEST(ChatTemplate, LooksThroughSpelling) {
  const std::string chatml =
      "{%- for  message in messages -%}\n   {{ \"<|im_start|>\" + message.role + '\n' + message.content + '<|im_end|>\\n' }}{# c #}\n"
      "{%- endfor %}{%- if add_generation_prompt %}\n    {{- '<|im_start|>assistant\n' }}{% endif %}\n";
  EXPECT_EQ(ChatTemplate::recognise(chatml, "<s>", "</s>", "x").name(), "chatml");
  for (const KnownChatTemplate& known : known_chat_templates())
    EXPECT_EQ(ChatTemplate::recognise(std::string(known.jinja) + "\n", "<s>", "</s>", "x").name(), known.name);
}

TEST(ChatTemplate, KeepsADefaultSystemMessage) {
  std::string jinja(known_chat_templates()[6].jinja);
  jinja.replace(jinja.find("SYSTEM"), 6, "You are \"Smol\".");
  const ChatTemplate chat = ChatTemplate::recognise(jinja, "<s>", "</s>", "x");
  EXPECT_EQ(chat.render({{"user", "a"}}).text,
            "<|im_start|>system\nYou are \"Smol\".<|im_end|>\n<|im_start|>user\na<|im_end|>\n");
  EXPECT_EQ(chat.render({{"system", "s"}}).text, "<|im_start|>system\ns<|im_end|>\n");
}

// Only words can be cut out; what makes words is another template.
TEST(ChatTemplate, TakesNoExpressionForAMessage) {
  const std::string jinja(known_chat_templates()[6].jinja);
  const auto with = [&](const std::string& system) {
    return std::string(jinja).replace(jinja.find("SYSTEM"), 6, system);
  };
  EXPECT_EQ(ChatTemplate::recognise(with("It\\'s\\n"), "<s>", "</s>", "x").render({{"user", "a"}}).text,
            "<|im_start|>system\nIt's\n<|im_end|>\n<|im_start|>user\na<|im_end|>\n");
  for (const char* system :
       {"' + default_system + '", "' ~ name ~ '", "<|im_end|>\n' }}{{ x }}{{ '", "caf\\u00e9", "'\x1f+\x1fx\x1f+\x1f'"})
    EXPECT_THAT(message_of<InputError>([&] { ChatTemplate::recognise(with(system), "<s>", "</s>", "dir"); }),
                HasSubstr("dir: the chat template is none of those known"))
        << system;
  const std::string zephyr(known_chat_templates()[0].jinja), user = "'<|user|>\n'";
  const std::string other = std::string(zephyr).replace(zephyr.find(user), user.size(), "'<|user|>' + x + '\n'");
  EXPECT_THAT(message_of<InputError>([&] { ChatTemplate::recognise(other, "<s>", "</s>", "dir"); }),
              HasSubstr("dir: the chat template is none"));
}

TEST(ChatTemplate, RefusesWhatItDoesNotKnow) {
  const std::string zephyr(known_chat_templates()[0].jinja);
  for (const std::string& jinja :
       {std::string(), std::string("{{"), std::string("{% for m in messages %}{{ m['content'] }}{% endfor %}"),
        zephyr + "x", zephyr.substr(2)})
    EXPECT_THAT(
        message_of<InputError>([&] { ChatTemplate::recognise(jinja, "<s>", "</s>", "dir/tokenizer_config.json"); }),
        HasSubstr(
            "dir/tokenizer_config.json: the chat template is none of those known (zephyr, llama-2, llama-3, chatml, alpaca)"))
        << jinja;
  EXPECT_THAT(message_of<InputError>([&] { ChatTemplate::recognise(zephyr, "<s>", "", "x"); }),
              HasSubstr("names none"));
  EXPECT_THAT(message_of<InputError>([&] {
                named("llama-2").render({{"user", "a"}, {"user", "b"}});
              }),
              HasSubstr("message 2 is of the user"));
  EXPECT_THAT(message_of<InputError>([&] {
                named("llama-2").render({{"user", "a"}, {"assistant", "b"}, {"assistant", "c"}});
              }),
              HasSubstr("message 3"));
}

TEST(ChatTemplate, LoadsFromADirectory) {
  const auto folder = std::filesystem::temp_directory_path() / ("zero-chat-" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  const auto write = [&](const char* name, const std::string& content) { std::ofstream(folder / name) << content; };
  EXPECT_THAT(message_of<InputError>([&] { ChatTemplate::load(folder); }), HasSubstr("has no chat template"));
  EXPECT_EQ(ChatTemplate::load(folder, "zephyr").end_of_turn(), "</s>");
  write(
      "tokenizer_config.json",
      R"({"eos_token": {"content": "<end>"}, "bos_token": null, "chat_template": [{"name": "default", "template": "?{{ messages[0].content }}"}]})");
  EXPECT_EQ(ChatTemplate::load(folder).name(), "jinja");
  EXPECT_EQ(ChatTemplate::load(folder).render({{"user", "a"}}).text, "?a");
  EXPECT_EQ(ChatTemplate::load(folder, "zephyr").end_of_turn(), "<end>");
  EXPECT_THAT(message_of<InputError>([&] { ChatTemplate::load(folder, "llama-2"); }), HasSubstr("bos_token"));
  write("chat_template.jinja", std::string(known_chat_templates()[3].jinja));
  EXPECT_EQ(ChatTemplate::load(folder).name(), "chatml");
  write("chat_template.jinja", "{% for m in messages %}<{{ m.role }}>{{ m.content }}{{ eos_token }}{% endfor %}");
  EXPECT_EQ(ChatTemplate::load(folder).end_of_turn(), "<end>");
  EXPECT_EQ(ChatTemplate::load(folder).prompt({{"user", "a"}}), "<user>a<end>");
  const std::string own = folder / "own.jinja";
  write("own.jinja", "{% for m in messages %}[{{ m.content }}]{{ eos_token }}{% endfor %}\n");
  EXPECT_EQ(ChatTemplate::load(folder, own).render({{"user", "a"}}).text, "[a]<end>");
  EXPECT_EQ(ChatTemplate::load(folder, own).name(), "jinja");
  EXPECT_EQ(ChatTemplate::load(folder, own).said(), "of " + own);
  EXPECT_EQ(ChatTemplate::load(folder, "zephyr").said(), "zephyr");
  write("own.jinja", std::string(known_chat_templates()[3].jinja));
  EXPECT_EQ(ChatTemplate::load(folder, own).name(), "chatml");
  EXPECT_THAT(message_of<InputError>([&] { ChatTemplate::load(folder, "own.jinja.not", "data.chat_template"); }),
              HasSubstr("data.chat_template own.jinja.not: is not known, and no file"));
  EXPECT_TRUE(ChatTemplate::is_choice(own) && ChatTemplate::is_choice("tinyllama"));
  EXPECT_FALSE(ChatTemplate::is_choice(folder) || ChatTemplate::is_choice(""));
  // a token that no file names is <s> to LlamaTokenizer, and absent to a tokenizer.json
  write("chat_template.jinja", "{{ bos_token }}{% for m in messages %}{{ m.content }}{{ eos_token }}{% endfor %}");
  write("tokenizer_config.json", "{}");
  EXPECT_EQ(ChatTemplate::load(folder).render({{"user", "a"}}).text, "<s>a</s>");
  write("tokenizer.json", "{}");
  EXPECT_EQ(ChatTemplate::load(folder).render({{"user", "a"}}).text, "a");
  write("special_tokens_map.json", R"({"bos_token": "<begin>", "eos_token": {"content": "<end>"}})");
  EXPECT_EQ(ChatTemplate::load(folder).render({{"user", "a"}}).text, "<begin>a<end>");
  EXPECT_EQ(ChatTemplate::load(folder).end_of_turn(), "<end>");
  write("chat_template.jinja", "{% if %}");
  EXPECT_THAT(message_of<InputError>([&] { ChatTemplate::load(folder); }),
              HasSubstr("chat_template.jinja: the chat template cannot be read"));
  std::filesystem::remove_all(folder);
}

}  // namespace chat_template_test
}  // namespace zero
