// Headers made to break a reader. Each must end in an InputError that names the file, and nothing else.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <random>

#include "base/error.h"
#include "base/json_text.h"
#include "models/formats/safetensors.h"
#include "tests/unit/temporary_folder.h"

namespace zero {
namespace {

using ::testing::HasSubstr;

/// The reader's message for a header before that many bytes of data; "accepted" if there is none.
std::string verdict(const std::string& header, std::int64_t data_bytes) {
  try {
    parse_safetensors_header(header, data_bytes, "a.safetensors");
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("a.safetensors"));
    return error.what();
  }
  return "accepted";
}

std::string one(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return R"({"w": {"dtype": ")" + dtype + R"(", "shape": )" + shape + R"(, "data_offsets": )" + offsets + "}}";
}

struct Attack {
  const char* what;
  std::string header;
  std::int64_t data_bytes;
  const char* message;
};

std::vector<Attack> attacks() {
  return {
      {"empty header", "", 0, "'{'"},
      {"other format", "GGUF....", 0, "'{'"},
      {"leading space", " {}", 0, "'{'"},
      {"byte order mark", "\xef\xbb\xbf{}", 0, "'{'"},
      {"array at the top", "[]", 0, "'{'"},
      {"second document behind", "{}{}", 0, "JSON"},
      {"polyglot tail", "{}PK\x03\x04", 0, "JSON"},
      {"zero byte behind", std::string("{}\0", 3), 0, "JSON"},
      {"cut JSON", R"({"w": {"dtype": "F32")", 0, "JSON"},
      {"bad UTF-8 in a name", "{\"\xff\": {\"dtype\": \"F32\", \"shape\": [], \"data_offsets\": [0, 4]}}", 4, "JSON"},
      {"unknown dtype", one("F33", "[1]", "[0, 4]"), 4, "unknown dtype"},
      {"lower-case dtype", one("f32", "[1]", "[0, 4]"), 4, "unknown dtype"},
      {"dtype as a number", R"({"w": {"dtype": 7, "shape": [1], "data_offsets": [0, 4]}})", 4, "number"},
      {"product wraps to zero", one("F32", "[4294967296, 4294967296]", "[0, 0]"), 0, "overflows"},
      {"product wraps to a small size", one("F32", "[4611686018427387905, 4]", "[0, 16]"), 16, "overflows"},
      {"overflow hidden behind a zero", one("F32", "[4611686018427387905, 1024, 0]", "[0, 0]"), 0, "overflows"},
      {"dimension beyond int64", one("F32", "[18446744073709551615]", "[0, 4]"), 4, "too large"},
      {"dimension beyond 64 bits", one("F32", "[340282366920938463463374607431768211456]", "[0, 4]"), 4,
       "whole number"},
      {"negative dimension", one("F32", "[-1]", "[0, 4]"), 4, "negative"},
      {"negative offset", one("F32", "[1]", "[-4, 0]"), 0, "negative"},
      {"fractional offset", one("F32", "[1]", "[0, 4.0]"), 4, "whole number"},
      {"offset in scientific writing", one("F32", "[1]", "[0, 4e0]"), 4, "whole number"},
      {"one offset", one("F32", "[1]", "[0]"), 4, "two numbers"},
      {"three offsets", one("F32", "[1]", "[0, 4, 8]"), 4, "two numbers"},
      {"offsets reversed", one("F32", "[1]", "[4, 0]"), 4, "before it begins"},
      {"hole at the front", one("F32", "[1]", "[4, 8]"), 8, "holes"},
      {"past the end", one("F32", "[2]", "[0, 8]"), 4, "cut short"},
      {"bytes left over", one("F32", "[1]", "[0, 4]"), 8, "file holds 8"},
      {"size against shape", one("F32", "[2]", "[0, 4]"), 4, "make 8"},
      {"size against dtype", one("F64", "[1]", "[0, 4]"), 4, "make 8"},
      {"hole in the middle",
       R"({"a": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}, "b": {"dtype": "U8", "shape": [1], "data_offsets": [2, 3]}})",
       3, "holes"},
      {"overlap",
       R"({"a": {"dtype": "U8", "shape": [2], "data_offsets": [0, 2]}, "b": {"dtype": "U8", "shape": [2], "data_offsets": [1, 3]}})",
       3, "holes"},
      {"same range twice",
       R"({"a": {"dtype": "U8", "shape": [2], "data_offsets": [0, 2]}, "b": {"dtype": "U8", "shape": [2], "data_offsets": [0, 2]}})",
       2, "holes"},
      {"same name twice",
       R"({"a": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}, "a": {"dtype": "U8", "shape": [1], "data_offsets": [1, 2]}})",
       2, "twice"},
      {"field twice", R"({"a": {"dtype": "U8", "dtype": "F32", "shape": [1], "data_offsets": [0, 1]}})", 1, "twice"},
      {"unknown field", R"({"a": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1], "stride": [1]}})", 1,
       "unknown field"},
      {"field missing", R"({"a": {"dtype": "U8", "shape": [1]}})", 0, "lacks"},
      {"tensor that is no object", R"({"a": 5})", 0, "number"},
      {"tensor that is null", R"({"a": null})", 0, "null"},
      {"nested shape", one("F32", "[[1]]", "[0, 4]"), 4, "array"},
      {"shape as an object", one("F32", "{}", "[0, 4]"), 4, "object"},
      {"shape of strings", one("F32", "[\"1\"]", "[0, 4]"), 4, "string"},
      {"rank nine", one("F32", "[1,1,1,1,1,1,1,1,1]", "[0, 4]"), 4, "dimensions"},
      {"half a byte", one("F4", "[1]", "[0, 0]"), 0, "whole bytes"},
      {"metadata with a number", R"({"__metadata__": {"a": 1}})", 0, "number"},
      {"metadata with an object", R"({"__metadata__": {"a": {}}})", 0, "object"},
      {"metadata that is a string", R"({"__metadata__": "x"})", 0, "string"},
      {"metadata twice", R"({"__metadata__": {}, "__metadata__": {}})", 0, "twice"},
      {"metadata key twice", R"({"__metadata__": {"a": "1", "a": "2"}})", 0, "twice"},
      {"endless name", "{\"" + std::string(5000, 'x') + R"(": {"dtype": "U8", "shape": [], "data_offsets": [0, 1]}})",
       1, "name"},
      {"deep nesting", R"({"a": )" + std::string(1000000, '['), 0, "array"},
  };
}

TEST(SafetensorsAttack, EveryHostileHeaderIsRefusedByItsRule) {
  for (const auto& attack : attacks())
    EXPECT_THAT(verdict(attack.header, attack.data_bytes), HasSubstr(attack.message)) << attack.what;
}

TEST(SafetensorsAttack, LegalCornersAreAccepted) {
  EXPECT_EQ(verdict("{}", 0), "accepted");
  EXPECT_EQ(verdict("{}      ", 0), "accepted");
  EXPECT_EQ(verdict(R"({"__metadata__": {"format": "pt"}})", 0), "accepted");
  EXPECT_EQ(verdict(one("F32", "[]", "[0, 4]"), 4), "accepted");
  EXPECT_EQ(verdict(one("F8_E4M3", "[3]", "[0, 3]"), 3), "accepted");
  EXPECT_EQ(verdict(one("F4", "[2]", "[0, 1]"), 1), "accepted");
  EXPECT_EQ(
      verdict(
          R"({"e": {"dtype": "F32", "shape": [0, 7], "data_offsets": [1, 1]}, "b": {"dtype": "U8", "shape": [1], "data_offsets": [1, 2]},
                        "a": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}, "f": {"dtype": "F32", "shape": [0], "data_offsets": [1, 1]}})",
          2),
      "accepted");
}

TEST(SafetensorsAttack, TooManyTensorsAreRefused) {
  std::string header = "{";
  for (int i = 0; i <= safetensors_max_tensors; ++i)
    header += (i ? ",\"" : "\"") + std::to_string(i) + R"(":{"dtype":"U8","shape":[0],"data_offsets":[0,0]})";
  EXPECT_THAT(verdict(header + "}", 0), HasSubstr("tensors"));
}

void write_raw(const std::string& path, std::uint64_t length, const std::string& rest) {
  std::string content(8, '\0');
  std::memcpy(content.data(), &length, 8);
  write_text_file(path, content + rest);
}

TEST(SafetensorsAttack, LyingLengthsAreRefused) {
  const TemporaryFolder folder;
  const std::string path = folder / "a.safetensors";
  const auto refusal = [&](std::uint64_t length, const std::string& rest) -> std::string {
    write_raw(path, length, rest);
    try {
      SafetensorsFile file(path);
    } catch (const InputError& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_EQ(refusal(2, "{}"), "accepted");
  EXPECT_THAT(refusal(3, "{}"), HasSubstr("cut short"));
  EXPECT_THAT(refusal(~std::uint64_t{0}, "{}"), HasSubstr("at most"));
  EXPECT_THAT(refusal(std::uint64_t{1} << 63, "{}"), HasSubstr("at most"));
  EXPECT_THAT(refusal(100'000'001, "{}"), HasSubstr("at most"));
  EXPECT_THAT(refusal(0, ""), HasSubstr("'{'"));
  write_text_file(path, "short");
  EXPECT_THROW(SafetensorsFile file(path), InputError);
  EXPECT_THROW(SafetensorsFile file(folder.path()), InputError);
  EXPECT_THROW(SafetensorsFile file(folder / "absent"), InputError);
}

TEST(SafetensorsAttack, RandomMutationsNeverGetFurtherThanAnInputError) {
  const std::string path = ZERO_TEST_DATA "/tiny/model/model.safetensors";
  const std::string whole = read_text_file(path);
  std::uint64_t length = 0;
  std::memcpy(&length, whole.data(), 8);
  const std::string header = whole.substr(8, length);
  const auto data_bytes = static_cast<std::int64_t>(whole.size() - 8 - length);
  ASSERT_EQ(verdict(header, data_bytes), "accepted");
  std::mt19937 random(7);
  const std::string alphabet = "{}[]\",:0123456789-.eE\\ \0\xff\x80uFwx";
  int refused = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string mutant = header;
    for (unsigned n = 1 + random() % 3; n > 0; --n) {
      const std::size_t place = random() % mutant.size();
      switch (random() % 4) {
        case 0:
          mutant[place] = static_cast<char>(mutant[place] ^ (1 << random() % 8));
          break;
        case 1:
          mutant[place] = alphabet[random() % alphabet.size()];
          break;
        case 2:
          mutant.erase(place, 1 + random() % 8);
          break;
        default:
          mutant.insert(place, mutant.substr(random() % mutant.size(), random() % 16));
          break;
      }
    }
    try {
      const SafetensorsHeader parsed = parse_safetensors_header(mutant, data_bytes, path);
      std::int64_t bytes = 0;  // what got through must still lie inside the file
      for (const auto& tensor : parsed.tensors) bytes += tensor.end - tensor.begin;
      ASSERT_EQ(bytes, data_bytes);
    } catch (const InputError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 15000);
}

}  // namespace
}  // namespace zero
