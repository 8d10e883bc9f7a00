#include "zero/data/text/token_cache.h"

#include <gmock/gmock.h>

#include <atomic>

#include "base/error.h"
#include "base/utf8.h"
#include "comm/communicator.h"
#include "comm/sim/sim_world.h"
#include "models/text/tokenizer.h"
#include "tests/unit/message_of.h"
#include "tests/unit/temporary_folder.h"
#include "zero/data/text/text_cutter.h"
#include "zero/data/text/token_cache_file.h"

namespace zero {
namespace {

using ::testing::HasSubstr;

// Letters become their code; a mark stands before every text that begins one, as SentencePiece's dummy space does; "ab"
// is one chunk.
struct Letters {
  std::atomic<int> calls{0};

  TextEncoder encoder(bool cut = true, std::string_view name = "letters") {
    TextEncoder encoder;
    encoder.encode = [this](std::string_view text, bool inside) {
      ++calls;
      std::vector<int> ids;
      if (!inside) ids.push_back(300);
      for (std::size_t i = 0; i < text.size(); ++i) {
        const bool pair = text.substr(i, 2) == "ab";
        ids.push_back(pair ? 301 : static_cast<unsigned char>(text[i]));
        if (pair) ++i;
      }
      return ids;
    };
    encoder.next_cut = [cut](std::string_view text, std::size_t from) {
      const std::size_t place = cut ? text.find('\n', std::max<std::size_t>(from, 1)) : std::string_view::npos;
      return std::min(place, text.size());
    };
    encoder.fingerprint = fingerprint_of(name);
    encoder.vocab_size = 302;
    return encoder;
  }
};

std::vector<std::int64_t> ids_of(const TokenFile& file) {
  std::vector<std::int64_t> ids(static_cast<std::size_t>(file.size()));
  file.read(0, file.size(), ids.data());
  return ids;
}

std::string lines(int n) {
  std::string text;
  for (int i = 0; i < n; ++i)
    text += std::string(static_cast<std::size_t>(i % 5), 'a') + "b \n" + (i % 7 == 0 ? "\n" : "");
  return text;
}

CoreSet cores(int count) {
  CoreSet set;
  for (int core = 0; core < count; ++core) set[static_cast<std::size_t>(core)] = true;
  return set;
}

std::vector<std::int64_t> made(CacheRecipe recipe, const std::string& folder, std::int64_t chunk_bytes,
                               int threads = 1) {
  recipe.chunk_bytes = chunk_bytes;
  std::vector<std::int64_t> ids;
  SimWorld(1).run(
      [&](Communicator& comm, int) { ids = ids_of(open_token_cache(recipe, folder, cores(threads), comm).ids); });
  std::filesystem::remove_all(folder);
  return ids;
}

TEST(TextCutter, CutsChangeNoId) {
  const TemporaryFolder folder;
  for (const std::string& text :
       {lines(100), "\n\n" + lines(20), std::string("no newline at all, abab"), std::string("\n"), lines(3) + "end"}) {
    const std::string path = folder.write("text", text);
    Letters letters;
    const auto uncut = made(text_recipe(path, letters.encoder(false)), folder.path("c"), 7);
    ASSERT_EQ(letters.calls, 1);
    for (const std::int64_t chunk : {1, 2, 7, 64, 100000})
      for (const int threads : {1, 3})
        EXPECT_EQ(made(text_recipe(path, letters.encoder()), folder.path("c"), chunk, threads), uncut) << chunk;
  }
}

TEST(TextCutter, RefusesWhatIsNoTextWhereverItIsCut) {
  const TemporaryFolder folder;
  const auto refusal = [&](const std::string& text, bool cut, std::int64_t chunk) {
    const std::string path = folder.write("t.txt", text);
    Letters letters;
    return message_of<InputError>([&] { made(text_recipe(path, letters.encoder(cut)), folder.path("c"), chunk); });
  };
  for (const bool cut : {false, true})
    for (const std::int64_t chunk : {1, 2, 3, 5, 1000}) {
      EXPECT_THAT(refusal("one\ntwo\nf\xfcr\n", cut, chunk), HasSubstr("t.txt: byte 9 (0xFC) is not UTF-8"));
      EXPECT_THAT(refusal("\xef\xbb\xbf"
                          "a\xff",
                          cut, chunk),
                  HasSubstr("byte 4 (0xFF)"));
      EXPECT_THAT(refusal(std::string("h\0i\0\n\0", 6), cut, chunk), HasSubstr("byte 1 is zero"));
      EXPECT_THAT(refusal("ends in\n\xe4\xb8", cut, chunk), HasSubstr("inside a character"));
      EXPECT_THAT(refusal("\xef\xbb\xbf", cut, chunk), HasSubstr("is empty"));
      Letters letters;
      const std::string path = folder.write("t.txt", "\xef\xbb\xbf\u00e9\n\u4e2d \U0001F680\n");
      const auto ids = made(text_recipe(path, letters.encoder(cut)), folder.path("c"), chunk);
      EXPECT_EQ(ids, made(text_recipe(folder.write("u.txt", "\u00e9\n\u4e2d \U0001F680\n"), letters.encoder(false)),
                          folder.path("c"), 1000));
    }
}

class TextCutterOfTokenizer : public ::testing::TestWithParam<const char*> {};

TEST_P(TextCutterOfTokenizer, CutsChangeNoId) {
  const Tokenizer tokenizer = Tokenizer::load(std::string(ZERO_TEST_DATA) + GetParam());
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 3000; ++i)
    text += "In the beginning  was line " + std::to_string(i * i) + (i % 9 ? "\n" : ", and on it went. ") +
            (i % 50 ? "" : "\n\n\tgr\u00fc\u00df dich \u4f60\u597d\n");
  const auto whole = tokenizer.encode(text, {.bos = true, .eos = true});
  const auto recipe = text_recipe(folder.write("t.txt", text), text_encoder_of(tokenizer));
  for (const std::int64_t chunk : {1000, 4096, 1 << 20})
    EXPECT_EQ(made(recipe, folder.path("c"), chunk, 4), std::vector<std::int64_t>(whole.begin(), whole.end())) << chunk;
  // Without a newline it is cut between words, so that no text of words is too long.
  std::string line;
  for (int i = 0; i < 3000; ++i) line += "and on it went ";
  CacheRecipe cut = text_recipe(folder.write("l.txt", line), text_encoder_of(tokenizer));
  cut.most_bytes = 4096;
  const auto ids = tokenizer.encode(line, {.bos = true, .eos = true});
  EXPECT_EQ(made(cut, folder.path("c"), 1000, 4), std::vector<std::int64_t>(ids.begin(), ids.end()));
}

INSTANTIATE_TEST_SUITE_P(Tokenizers, TextCutterOfTokenizer,
                         ::testing::Values("/tinyllama-chat", "/pipelines/llama3", "/pipelines/mistral"));

TEST(TextCutter, ATextThatCannotBeCutIsRefusedBeforeItFillsTheMemory) {
  const TemporaryFolder folder;
  Letters letters;
  CacheRecipe recipe = text_recipe(folder.write("t.txt", lines(100)), letters.encoder(false));
  recipe.most_bytes = recipe.chunk_bytes = 100;
  SimWorld(2).run([&](Communicator& comm, int) {
    EXPECT_THAT(message_of<InputError>([&] { open_token_cache(recipe, folder.path("c"), {}, comm); }),
                ::testing::AllOf(HasSubstr("t.txt:1: "), HasSubstr("without a place where")));
  });
  EXPECT_EQ(letters.calls, 0);
}

TEST(TokenCache, HoldsBosTextAndEosAndIsMadeOnce) {
  const TemporaryFolder folder;
  const std::string path = folder.write("t.txt", "xab\n");
  Letters letters;
  SimWorld(3).run([&](Communicator& comm, int) {
    for (int again = 0; again < 2; ++again)
      EXPECT_THAT(
          ids_of(open_token_cache(text_recipe(path, letters.encoder(false)), folder.path("cache"), {}, comm).ids),
          ::testing::ElementsAre(1, 300, 'x', 301, '\n', 2));
  });
  EXPECT_EQ(letters.calls, 1);
}

// Opens the cache of a text with one chunk per line, and records if it was made.
struct Opened {
  TemporaryFolder folder;
  std::string path = folder.write("t.txt", "one\ntwo\nthree\n");
  Letters letters;

  CacheRecipe recipe(std::string_view tokenizer) {
    CacheRecipe recipe = text_recipe(path, letters.encoder(true, tokenizer));
    recipe.chunk_bytes = 4;
    return recipe;
  }
  std::string cache(std::string_view tokenizer) { return token_cache_path(recipe(tokenizer), folder.path("c")); }
  bool made(std::string_view tokenizer) {
    const int before = letters.calls;
    std::int64_t size = 0;
    SimWorld(2).run([&](Communicator& comm, int) {
      size = open_token_cache(recipe(tokenizer), folder.path("c"), cores(2), comm).ids.size();
    });
    EXPECT_EQ(size, static_cast<std::int64_t>(std::filesystem::file_size(path)) + 3);
    return letters.calls > before;
  }
};

TEST(TokenCache, IsMadeAnewWhenTheTextChangedAndKeptForEachTokenizer) {
  Opened opened;
  EXPECT_TRUE(opened.made("a"));
  EXPECT_FALSE(opened.made("a"));
  EXPECT_TRUE(opened.made("b"));
  EXPECT_FALSE(opened.made("a"));
  opened.folder.write("t.txt", "one\ntwO\nthree\n");  // of the same size
  EXPECT_TRUE(opened.made("b"));
  EXPECT_FALSE(opened.made("b"));
  opened.folder.write("t.txt", "one\ntwo\nthree\nfour");
  EXPECT_TRUE(opened.made("b"));
}

TEST(TokenCache, IsMadeAnewWhereAByteOfItChangedOrIsMissing) {
  Opened opened;
  EXPECT_TRUE(opened.made("a"));
  const std::string cache = opened.cache("a");
  const auto bytes = static_cast<std::int64_t>(std::filesystem::file_size(cache));
  for (std::int64_t at = 0; at < bytes; at += 11) {
    std::fstream file(cache, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(at);
    const char flipped = static_cast<char>(file.get() ^ 4);
    file.seekp(at);
    file.put(flipped);
    file.close();
    EXPECT_TRUE(opened.made("a")) << at;
  }
  for (const std::int64_t left : {bytes - 2, std::int64_t{100}, std::int64_t{0}}) {
    std::filesystem::resize_file(cache, static_cast<std::uintmax_t>(left));
    EXPECT_TRUE(opened.made("a")) << left;
  }
  EXPECT_FALSE(opened.made("a"));
}

TEST(TokenCache, IsDiscardedIfTheTextChangesMeanwhile) {
  Opened opened;
  CacheRecipe recipe = opened.recipe("a");
  recipe.encode = [&, encode = recipe.encode](const SourceChunk& chunk) {
    std::ofstream(opened.path, std::ios::app) << "more\n";
    return encode(chunk);
  };
  SimWorld(2).run([&](Communicator& comm, int) {
    EXPECT_THAT(message_of<InputError>([&] { open_token_cache(recipe, opened.folder.path("c"), cores(1), comm); }),
                HasSubstr("t.txt: was changed while it was read"));
  });
  EXPECT_FALSE(std::filesystem::exists(opened.folder.path("c")));
}

// Another run puts a cache of the same name there before all ranks have opened this one's.
TEST(TokenCache, AnotherRunsIsNotTakenForRankZeros) {
  Opened opened;
  EXPECT_TRUE(opened.made("a"));
  const std::string cache = opened.cache("a"), others = opened.folder.path("others");
  opened.folder.write("t.txt", "one\ntwO\nthree\n");
  EXPECT_TRUE(opened.made("a"));
  std::filesystem::rename(cache, others);
  opened.folder.write("t.txt", "one\ntwo\nthree\n");
  SimWorld(2).run([&](Communicator& comm, int rank) {
    if (rank == 0)
      comm.set_observer([&](const CallRecord&) {
        if (std::filesystem::exists(cache) && std::filesystem::exists(others)) std::filesystem::rename(others, cache);
      });
    EXPECT_THAT(
        message_of<InputError>([&] { open_token_cache(opened.recipe("a"), opened.folder.path("c"), cores(1), comm); }),
        HasSubstr("differs from what rank 0 wrote"));
  });
}

TEST(TokenCache, IsUnreadableForThoseWhoMayNotReadTheText) {
  namespace fs = std::filesystem;
  Opened opened;
  fs::permissions(opened.path, fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_TRUE(opened.made("a"));
  EXPECT_EQ(fs::status(opened.cache("a")).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST(TokenCache, LongNamesOfTextsAreCutBetweenCharacters) {
  CacheRecipe recipe;
  std::string name = "ab";
  while (name.size() < 250) name += "\u00fc";
  recipe.source = "/" + name;
  const std::string path = std::filesystem::path(token_cache_path(recipe, "f")).filename();
  EXPECT_LE(path.size() + std::string_view(".tmp-0123456789abcdef").size(), 255u);
  EXPECT_EQ(path.substr(0, path.find('.')), name.substr(0, 150));
  recipe.source = "/a" + name.substr(0, 249);
  EXPECT_NO_THROW(require_utf8(std::filesystem::path(token_cache_path(recipe, "f")).filename().string(), ""));
  recipe.source = "/" + name + "a";
  EXPECT_NE(std::filesystem::path(token_cache_path(recipe, "f")).filename(), path);
}

TEST(TokenCache, EveryRankThrowsTheSameError) {
  const TemporaryFolder folder;
  Letters letters;
  const std::string empty = folder.write("empty.txt", ""), file = folder.write("file", "x");
  SimWorld(2).run([&](Communicator& comm, int) {
    const auto open = [&](const std::string& path, const std::string& cache) {
      open_token_cache(text_recipe(path, letters.encoder()), cache, {}, comm);
    };
    EXPECT_THAT(message_of<InputError>([&] { open(folder.path("none.txt"), folder.path("c")); }),
                HasSubstr("none.txt"));
    EXPECT_THAT(message_of<InputError>([&] { open(empty, folder.path("c")); }), HasSubstr("is empty"));
    EXPECT_THROW(open(file, folder.path("file/below")), std::exception);
  });
}

TEST(TokenCache, ReportsItsProgress) {
  const TemporaryFolder folder;
  Letters letters;
  CacheRecipe recipe = text_recipe(folder.write("text", lines(100)), letters.encoder());
  recipe.chunk_bytes = 100;
  std::vector<std::int64_t> told;
  const auto size = static_cast<std::int64_t>(lines(100).size());
  write_token_cache(folder.path("cache/c"), recipe, cores(2), [&](std::int64_t done, std::int64_t all) {
    EXPECT_EQ(all, size);
    told.push_back(done);
  });
  ASSERT_GT(told.size(), 3U);
  EXPECT_TRUE(std::is_sorted(told.begin(), told.end()));
  EXPECT_EQ(told.back(), size);
}

}  // namespace
}  // namespace zero
