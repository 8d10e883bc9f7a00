#include <gmock/gmock.h>
#include <sentencepiece_processor.h>

#include <cstring>
#include <ctime>
#include <fstream>
#include <random>

#include "base/error.h"
#include "base/json_text.h"
#include "models/formats/gguf/tokenizer/gguf_vocabulary.h"
#include "models/text/character_map.h"
#include "models/text/tokenizer.h"
#include "models/text/tokenizer_model.h"
#include "tests/unit/temporary_folder.h"

namespace zero {
namespace tokenizer_attack_test {

using ::testing::HasSubstr;

const std::string data = ZERO_TEST_DATA;

std::string model(const std::string& name) { return read_text_file(data + "/" + name); }

std::string map_of(const std::string& content) {
  return std::string(parse_tokenizer_model(content, "m").character_map);
}

/// Loads a model and encodes with it whatever it accepts: an InputError or ids, never the end of the process.
bool survives(const std::string& content, const std::vector<std::string>& texts) {
  static const TemporaryFolder own;
  std::ofstream(own / "tokenizer.model", std::ios::binary) << content;
  try {
    const Tokenizer tokenizer = Tokenizer::load(own.path());
    for (const std::string& text : texts) tokenizer.decode(tokenizer.encode(text, {}));
    return true;
  } catch (const InputError&) {
    return false;
  }
}

/// The same without files, by SentencePiece itself once the look at the model has nothing against it.
bool survives_in_memory(const std::string& content, const std::vector<std::string>& texts) {
  try {
    parse_tokenizer_model(content, "m");
  } catch (const InputError&) {
    return false;
  }
  sentencepiece::SentencePieceProcessor processor;
  if (!processor.LoadFromSerializedProto(content).ok()) return false;
  std::vector<int> ids;
  for (const std::string& text : texts) processor.Encode(text, &ids).IgnoreError();
  return true;
}

/// All bytes, all characters of two and three bytes, and long runs that go deep into a table.
std::vector<std::string> hard_texts() {
  std::string bytes, wide;
  for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
  for (int i = 0xC2; i < 0xF0; ++i)
    for (int j = 0x80; j < 0xC0; ++j)
      (wide += static_cast<char>(i)) += static_cast<char>(j), wide += i < 0xE0 ? "" : "\x81";
  return {bytes, wide, std::string(300, 'A') + "\uFB01 AAB " + std::string(100, '\xEF'), "\u1E9B\u0323 \u3300 \u00BD",
          std::string(100, '\0')};
}

void put(std::string& content, std::size_t at, std::uint32_t word) {
  std::memcpy(content.data() + at, &word, sizeof word);
}

TEST(TokenizerAttack, SoundModelsAreTaken) {
  EXPECT_TRUE(survives(model("normalisers/nfkc.model"), hard_texts()));
  EXPECT_TRUE(survives(model("normalisers/rules.model"), hard_texts()));
  EXPECT_EQ(fault_of_character_map(map_of(model("normalisers/nfkc.model"))), nullptr);
  EXPECT_EQ(fault_of_character_map(""), nullptr);
}

TEST(TokenizerAttack, ATableThatLeadsOutOfItselfIsRefused) {
  const std::string sound = model("normalisers/nfkc.model"), map = map_of(sound);
  const std::size_t begin = sound.find(map);
  std::uint32_t bytes = 0;
  std::memcpy(&bytes, map.data(), sizeof bytes);
  std::string filled = sound;
  std::fill_n(filled.begin() + static_cast<std::ptrdiff_t>(begin) + 4, bytes, '\xff');
  EXPECT_FALSE(survives(filled, hard_texts()));
  for (const std::uint32_t word : {0u, 0xFFFFFFFFu, 0x7FFFFFFFu, 0x3FFu, 0x80000000u, 0x00FFFC00u}) {
    std::string other = sound;
    put(other, begin + 4, word);  // the root
    survives(other, hard_texts());
    other = sound;
    put(other, begin, word);  // the table's size
    survives(other, hard_texts());
  }
}

// The root's child 'A' leads back to it: every A of a text would be another rule met.
TEST(TokenizerAttack, CirclesAndTooManyRulesAreRefused) {
  const auto map_with = [](const std::vector<std::pair<std::size_t, std::uint32_t>>& units, std::size_t count) {
    std::string map(4 + 4 * count + 2, '\0');
    put(map, 0, static_cast<std::uint32_t>(4 * count));
    for (std::size_t i = 0; i < count; ++i) put(map, 4 + 4 * i, 0x80000000u);
    for (const auto& [place, word] : units) put(map, 4 + 4 * place, word);
    return map;
  };
  const auto unit = [](std::uint32_t offset, std::uint32_t label) { return offset << 10 | label; };
  EXPECT_EQ(fault_of_character_map(map_with({{0, unit(256, 0)}}, 512)), nullptr);
  EXPECT_THAT(fault_of_character_map(map_with({{0, unit(256, 0)}, {256 + 'A', unit('A', 'A')}}, 512)),
              HasSubstr("circle"));
  EXPECT_THAT(fault_of_character_map(map_with({{0, unit(256, 0)}}, 500)), HasSubstr("out of its own table"));
  std::string endless = map_with({{0, unit(256, 0)}}, 512);
  endless.back() = 'x';
  EXPECT_THAT(fault_of_character_map(endless), HasSubstr("texts without end"));
  // A becomes what stands from byte 1 on.
  std::string inside =
      map_with({{0, unit(256, 0)}, {256 + 'A', unit((256 + 'A') ^ 512, 'A') | 0x100}, {512, 0x80000001u}}, 768);
  inside.replace(inside.size() - 2, 2, std::string("\u00fc\0", 3));
  EXPECT_THAT(fault_of_character_map(inside), HasSubstr("not UTF-8"));
  put(inside, 4 + 4 * 512, 0x80000000u);
  EXPECT_EQ(fault_of_character_map(inside), nullptr);
  std::vector<std::pair<std::size_t, std::uint32_t>> chain{{0, unit(256, 0)}};  // A, AA, AAA, ... are rules
  for (std::size_t i = 1; i <= 33; ++i) {
    const std::size_t place = 256 * i + 'A', next = 256 * (i + 1);
    chain.emplace_back(place, unit(static_cast<std::uint32_t>(place ^ next), 'A') | 0x100);
  }
  EXPECT_THAT(fault_of_character_map(map_with(chain, 256 * 40)), HasSubstr("more rules"));
  chain.pop_back();
  EXPECT_EQ(fault_of_character_map(map_with(chain, 256 * 40)), nullptr);
}

// 65536 rules with one text of 16 MiB.
TEST(TokenizerAttack, ATextThatManyRulesShareIsReadOnce) {
  constexpr std::uint32_t leaf = 256 * 258, count = leaf + 256;
  std::string map(4 + 4 * count, 'x');
  put(map, 0, 4 * count);
  for (std::uint32_t i = 0; i < count; ++i) put(map, 4 + 4 * i, 0x80000000u);
  const auto lead = [&](std::uint32_t from, std::uint32_t to, std::uint32_t label) {
    put(map, 4 + 4 * from, (from ^ to) << 10 | label);
  };
  lead(0, 256, 0);
  for (std::uint32_t a = 0; a < 256; ++a) {
    lead(256 + a, 256 * (a + 2), a);
    for (std::uint32_t b = 0; b < 256; ++b) lead(256 * (a + 2) + b, leaf, b | 0x100);
  }
  map.append(1 << 24, 'x').push_back('\0');
  const std::clock_t begin = std::clock();
  EXPECT_EQ(fault_of_character_map(map), nullptr);
  EXPECT_LT(std::clock() - begin, 10 * CLOCKS_PER_SEC);
}

TEST(TokenizerAttack, MutatedModelsNeverCrash) {
  std::mt19937 random(11);
  const auto texts = hard_texts();
  const std::vector<std::string> few{texts[0], texts[2]};
  const auto mutate = [&](std::string content, std::size_t begin, std::size_t count) {
    for (std::size_t change = 1 + random() % 4; change-- > 0;) {
      const std::size_t at = begin + random() % count;
      switch (random() % 4) {
        case 0:
          content[at] = static_cast<char>(random());
          break;
        case 1:
          content[at] = static_cast<char>(content[at] ^ 1 << random() % 8);
          break;
        case 2:
          content[at] = random() % 2 ? '\xff' : '\0';
          break;
        default:
          content[at] = content[begin + random() % count];
      }
    }
    return content;
  };
  int taken = 0, refused = 0;
  const std::string rules = model("normalisers/rules.model"), table = map_of(rules);
  const std::size_t place = rules.find(table);
  for (int i = 0; i < 12000; ++i) ++(survives_in_memory(mutate(rules, 0, rules.size()), few) ? taken : refused);
  for (int i = 0; i < 12000; ++i) ++(survives_in_memory(mutate(rules, place, table.size()), few) ? taken : refused);
  const std::string nfkc = model("normalisers/nfkc.model"), wide = map_of(nfkc);
  for (int i = 0; i < 60; ++i) ++(survives(mutate(nfkc, nfkc.find(wide), wide.size()), texts) ? taken : refused);
  for (int i = 0; i < 200; ++i) ++(survives(mutate(rules, 0, rules.size()), texts) ? taken : refused);
  EXPECT_GT(taken, 1000);
  EXPECT_GT(refused, 1000);
}

std::string refusal(const std::string& content) {
  try {
    parse_tokenizer_model(content, "m");
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(TokenizerAttack, FieldsThatSentencePieceTrustsAreChecked) {
  const std::string sound = model("normalisers/rules.model");
  const auto piece = [&](const std::string& fields) {
    return sound + "\x0A" + static_cast<char>(fields.size()) + fields;
  };
  EXPECT_EQ(refusal(piece(std::string("\x0A\x01z\x15\0\0\0\0", 8))), "accepted");
  EXPECT_THAT(refusal(piece(std::string("\x0A\x01z\x15\0\0\xC0\x7F", 8))), HasSubstr("is no finite number"));
  EXPECT_THAT(refusal(piece(std::string("\x0A\0", 2))), HasSubstr("has 0 bytes"));
  EXPECT_THAT(refusal(piece("\x0A\x01\xff")), HasSubstr("is not UTF-8"));
  // a map of another kind behind the real one: SentencePiece keeps the real one
  EXPECT_THAT(refusal(sound + std::string("\x1A\x02\x10\0", 4)), HasSubstr("wrong kind"));
  EXPECT_THAT(refusal(sound + std::string("\x2A\x03\x12\x01z", 5)),
              HasSubstr("character map is cut short"));  // the way back
}

// llama.cpp merges alone, and would give other ids.
TEST(TokenizerAttack, ModelsThatDoMoreThanMergeAreNoGgufFiles) {
  const TemporaryFolder own;
  const auto refusal_of = [&](const std::string& content) -> std::string {
    write_text_file(own / "tokenizer.model", content);
    EXPECT_FALSE(Tokenizer::load(own.path()).encode("God said").empty());
    try {
      gguf_vocabulary(own.path(), 100000);
    } catch (const InputError& error) {
      return error.what();
    }
    return "accepted";
  };
  const std::string bpe = model("added-tokens/tokenizer.model"), nfkc = model("normalisers/nfkc.model");
  EXPECT_EQ(refusal_of(bpe), "accepted");
  EXPECT_THAT(refusal_of(nfkc), HasSubstr("is a unigram model; GGUF files know merges alone"));
  EXPECT_THAT(refusal_of(nfkc), HasSubstr("--model_type=bpe"));
  EXPECT_THAT(refusal_of(nfkc + std::string("\x12\x02\x18\x02", 4)),
              HasSubstr("rewrites characters"));  // trainer_spec: BPE
  EXPECT_THAT(refusal_of(bpe + std::string("\x1A\x02\x20\x01", 4)), HasSubstr("removes extra white space"));
  EXPECT_THAT(refusal_of(bpe + std::string("\x1A\x02\x28\x00", 4)), HasSubstr("writes spaces in another way"));
  EXPECT_THAT(refusal_of(bpe + std::string("\x12\x02\x18\x04", 4)), HasSubstr("is no BPE model"));
}

}  // namespace tokenizer_attack_test
}  // namespace zero
