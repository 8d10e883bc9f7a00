#include "zero/fetch/patience.h"

#include <gmock/gmock.h>

#include <vector>

#include "base/error.h"
#include "tests/unit/message_of.h"
#include "zero/fetch/hub_refusals.h"

namespace zero {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

HttpAnswer status(int number) {
  HttpAnswer answer;
  answer.status = number;
  answer.host = "hub";
  return answer;
}

HttpAnswer trouble(const std::string& words) {
  HttpAnswer answer = status(0);
  answer.trouble = words;
  return answer;
}

TEST(Patience, IsForFailuresThatMayPass) {
  for (const int number : {408, 425, 429, 500, 502, 503, 504}) EXPECT_TRUE(may_pass(status(number))) << number;
  for (const int number : {200, 206, 301, 400, 401, 403, 404, 416}) EXPECT_FALSE(may_pass(status(number))) << number;
  EXPECT_TRUE(may_pass(trouble("connection reset")));
  HttpAnswer certificate = trouble("SSL certificate problem");
  certificate.lasting = true;
  EXPECT_FALSE(may_pass(certificate));
}

TEST(Patience, WaitsTwiceAsLongEachTimeAndEnds) {
  std::vector<long> waits;
  Patience patience(3, "a.bin", [&](std::chrono::milliseconds time) { waits.push_back(time.count()); });
  for (int i = 0; i < 3; ++i) patience.wait_after(status(503));
  EXPECT_THAT(message_of<Error>([&] { patience.wait_after(trouble("reset")); }),
              AllOf(HasSubstr("a.bin: hub: reset, after 4 tries"), HasSubstr("run the same command again"),
                    HasSubstr("HF_ENDPOINT=URL")));
  EXPECT_THAT(waits, ElementsAre(500, 1000, 2000));
  patience.renew();
  patience.wait_after(status(503));
  EXPECT_EQ(waits.back(), 500);
}

TEST(Patience, WaitsAsLongAsTheHubAsksButNotForHours) {
  std::vector<long> waits;
  Patience patience(99, "a.bin", [&](std::chrono::milliseconds time) { waits.push_back(time.count()); });
  HttpAnswer busy = status(429);
  busy.wait = std::chrono::seconds(7);
  patience.wait_after(busy);
  EXPECT_THAT(waits, ElementsAre(7000));
  for (int i = 0; i < 9; ++i) patience.wait_after(status(500));
  EXPECT_EQ(waits.back(), Patience::longest_wait.count());
  busy.wait = std::chrono::hours(1);
  EXPECT_THAT(message_of<Error>([&] { patience.wait_after(busy); }), HasSubstr("asks to wait for 3600 s"));
}

TEST(Refusals, NameReasonAndRemedyButNeverTheToken) {
  const Repository repository{RepositoryKind::model, "a/b", "v2"};
  HubSettings anonymous, known;
  known.token = "hf_secret";
  known.token_place = "HF_TOKEN";
  const auto said = [&](int number, const char* code, const HubSettings& settings) {
    HttpAnswer answer = status(number);
    answer.error_code = code;
    const std::string words = refusal_of(answer, repository, settings);
    EXPECT_EQ(words.find("hf_secret"), std::string::npos) << words;
    return words;
  };
  EXPECT_THAT(said(401, "GatedRepo", anonymous), AllOf(HasSubstr("is gated"), HasSubstr("huggingface.co/a/b")));
  EXPECT_THAT(said(403, "GatedRepo", known),
              AllOf(HasSubstr("token in HF_TOKEN may not"), HasSubstr("ask for access")));
  EXPECT_THAT(said(401, "RepoNotFound", anonymous), AllOf(HasSubstr("or is private"), HasSubstr("set HF_TOKEN")));
  EXPECT_THAT(said(401, "", known), HasSubstr("does not accept the token in HF_TOKEN"));
  EXPECT_THAT(said(404, "RepoNotFound", anonymous), AllOf(HasSubstr("does not exist"), HasSubstr("--dataset")));
  EXPECT_THAT(said(404, "RevisionNotFound", anonymous), HasSubstr("no revision \"v2\""));
  EXPECT_THAT(said(404, "EntryNotFound", anonymous), HasSubstr("no such file"));
}

TEST(Http, KnowsOriginsAndRanges) {
  EXPECT_EQ(origin_of("https://HuggingFace.co/a"), origin_of("https://huggingface.co:443/b?c"));
  for (const char* other : {"http://huggingface.co/", "https://huggingface.co:444/", "https://huggingface.co.evil.org/",
                            "https://cdn.huggingface.co/", "https://evil.org/@huggingface.co"})
    EXPECT_NE(origin_of(other), origin_of("https://huggingface.co")) << other;
  EXPECT_EQ(first_byte_of("bytes 5-9/10"), 5);
  EXPECT_EQ(first_byte_of("bytes 5-9/*"), 5);
  for (const char* words : {"", "bytes */10", "bytes -1-5/10", "items 1-2/3", "bytes 7"})
    EXPECT_EQ(first_byte_of(words), std::nullopt) << words;
}

}  // namespace
}  // namespace zero
