#include "zero/data/token_cache.h"

#include <gmock/gmock.h>

#include <atomic>

#include "comm/communicator.h"
#include "comm/error.h"
#include "comm/sim_world.h"
#include "tests/unit/data/temporary_folder.h"
#include "zero/data/text_cutter.h"
#include "zero/data/together.h"

namespace zero {
namespace {

using testing::HasSubstr;

// Letters become their code; a mark stands before every text, as SentencePiece's dummy space does; "ab" is one piece.
struct Letters {
  std::atomic<int> calls{0};

  TextEncoder encoder(bool cut = true, std::string_view name = "letters") {
    TextEncoder encoder;
    encoder.encode = [this](std::string_view text) {
      ++calls;
      std::vector<int> ids = {300};
      for (std::size_t i = 0; i < text.size(); ++i) {
        const bool pair = text.substr(i, 2) == "ab";
        ids.push_back(pair ? 301 : static_cast<unsigned char>(text[i]));
        if (pair) ++i;
      }
      return ids;
    };
    encoder.fingerprint = fingerprint_of(name);
    encoder.vocab_size = 302;
    encoder.newline_stands_alone = cut;
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
  for (int i = 0; i < n; ++i) text += std::string(static_cast<std::size_t>(i % 5), 'a') + "b \n" + (i % 7 == 0 ? "\n" : "");
  return text;
}

std::vector<int> whole(const std::string& path, const TextEncoder& encoder, std::int64_t piece_bytes) {
  std::vector<int> ids;
  encode_text_file(path, encoder, [&](const std::vector<int>& piece) { ids.insert(ids.end(), piece.begin(), piece.end()); }, piece_bytes);
  return ids;
}

TEST(TextCutter, CutsChangeNoId) {
  const TemporaryFolder folder;
  for (const std::string& text : {lines(100), "\n\n" + lines(20), std::string("no newline at all, abab"), std::string("\n"), lines(3) + "end"}) {
    const std::string path = folder.write("text", text);
    Letters letters;
    const std::vector<int> uncut = whole(path, letters.encoder(false), 7);
    ASSERT_EQ(letters.calls, 1);
    for (const std::int64_t piece : {1, 2, 7, 64, 100000}) EXPECT_EQ(whole(path, letters.encoder(), piece), uncut) << piece;
  }
}

TEST(TokenCache, HoldsBosTextAndEosAndIsMadeOnce) {
  const TemporaryFolder folder;
  const std::string path = folder.write("t.txt", "xab\n");
  Letters letters;
  SimWorld(3).run([&](Communicator& comm, int) {
    for (int again = 0; again < 2; ++again)
      EXPECT_THAT(ids_of(open_token_cache(path, letters.encoder(false), folder.path("cache"), comm)), testing::ElementsAre(1, 300, 'x', 301, '\n', 2));
  });
  EXPECT_EQ(letters.calls, 1);
}

TEST(TokenCache, IsMadeAnewWhenTextTokenizerOrFileChanged) {
  const TemporaryFolder folder;
  const std::string path = folder.write("t.txt", "one"), cache = token_cache_path(path, folder.path("c"));
  Letters letters;
  const auto open = [&](std::string_view tokenizer) {
    const int before = letters.calls;
    std::int64_t size = 0;
    SimWorld(1).run([&](Communicator& comm, int) { size = open_token_cache(path, letters.encoder(false, tokenizer), folder.path("c"), comm).size(); });
    EXPECT_EQ(size, static_cast<std::int64_t>(std::filesystem::file_size(path)) + 3);
    return letters.calls > before;
  };
  EXPECT_TRUE(open("a"));
  EXPECT_FALSE(open("a"));
  EXPECT_TRUE(open("b"));
  folder.write("t.txt", "two!");
  EXPECT_TRUE(open("b"));
  std::filesystem::resize_file(cache, std::filesystem::file_size(cache) - 2);
  EXPECT_TRUE(open("b"));
  std::filesystem::resize_file(cache, 100);
  EXPECT_TRUE(open("b"));
  EXPECT_FALSE(open("b"));
}

TEST(TokenCache, EveryRankThrowsTheSameError) {
  const TemporaryFolder folder;
  Letters letters;
  const std::string empty = folder.write("empty.txt", ""), file = folder.write("file", "x");
  SimWorld(2).run([&](Communicator& comm, int) {
    const auto open = [&](const std::string& path, const std::string& cache) { open_token_cache(path, letters.encoder(), cache, comm); };
    EXPECT_THAT(message_of<InputError>([&] { open(folder.path("none.txt"), folder.path("c")); }), HasSubstr("none.txt"));
    EXPECT_THAT(message_of<InputError>([&] { open(empty, folder.path("c")); }), HasSubstr("is empty"));
    EXPECT_THROW(open(file, folder.path("file/below")), std::exception);
  });
}

TEST(Together, TheLowestFailingRankIsHeardEverywhere) {
  SimWorld(4).run([](Communicator& comm, int rank) {
    EXPECT_THAT(message_of<Error>([&] { run_together(comm, [&] { if (rank > 1) throw Error("rank " + std::to_string(rank)); }); }), "rank 2");
    EXPECT_EQ(message_of<InputError>([&] { run_together(comm, [&] { if (rank == 3) throw InputError(""); }); }), "");
    run_together(comm, [] {});
  });
}

}  // namespace
}  // namespace zero
