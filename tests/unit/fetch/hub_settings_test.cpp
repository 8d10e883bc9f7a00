#include "zero/fetch/hub_settings.h"

#include <gmock/gmock.h>

#include <map>

#include "base/error.h"
#include "tests/unit/message_of.h"
#include "tests/unit/temporary_folder.h"

namespace zero {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

HubSettings settings(const std::map<std::string, std::string>& variables) {
  return HubSettings::of([&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

TEST(HubSettings, HaveTheCacheOfHuggingFace) {
  EXPECT_EQ(settings({{"HOME", "/h"}}).cache, "/h/.cache/huggingface/hub");
  EXPECT_EQ(settings({{"HOME", "/h"}, {"XDG_CACHE_HOME", "/x"}}).cache, "/x/huggingface/hub");
  EXPECT_EQ(settings({{"HOME", "/h"}, {"HF_HOME", "~/f"}}).cache, "/h/f/hub");
  EXPECT_EQ(settings({{"HF_HOME", "/f"}, {"HUGGINGFACE_HUB_CACHE", "/g"}}).cache, "/g");
  EXPECT_EQ(settings({{"HF_HUB_CACHE", "/c"}, {"HUGGINGFACE_HUB_CACHE", "/g"}}).cache, "/c");
  EXPECT_EQ(settings({}).cache, "");
}

TEST(HubSettings, TakeTheTokenFromAVariableThenFromItsFile) {
  const TemporaryFolder folder;
  folder.write("token", " hf_file\n");
  EXPECT_EQ(settings({{"HF_HOME", folder.path()}}).token, "hf_file");
  EXPECT_EQ(settings({{"HF_HOME", folder.path()}}).token_place, folder / "token");
  EXPECT_EQ(settings({{"HF_HOME", folder.path()}, {"HF_TOKEN", "hf_a\n"}}).token, "hf_a");
  EXPECT_EQ(settings({{"HUGGING_FACE_HUB_TOKEN", "hf_b"}}).token_place, "HUGGING_FACE_HUB_TOKEN");
  EXPECT_EQ(settings({{"HF_HOME", folder.path()}, {"HF_TOKEN", ""}}).token, "hf_file");
  EXPECT_EQ(settings({{"HF_HOME", "/nowhere"}}).token, "");
  EXPECT_THAT(message_of<InputError>([] {
                settings({{"HF_TOKEN", "hf_a\nHost: b"}});
              }),
              AllOf(HasSubstr("HF_TOKEN"), Not(HasSubstr("hf_a"))));
}

TEST(HubSettings, RefuseValuesThatCannotBeMeant) {
  EXPECT_EQ(settings({{"HF_ENDPOINT", "http://h:8/mirror/"}}).endpoint, "http://h:8/mirror");
  for (const char* endpoint : {"huggingface.co", "ftp://h", "https://", "https://h?a", "https://h b"})
    EXPECT_THAT(message_of<InputError>([&] { settings({{"HF_ENDPOINT", endpoint}}); }), HasSubstr("HF_ENDPOINT"));
  EXPECT_THAT(message_of<InputError>([] {
                settings({{"HF_ENDPOINT", "https://me:secret@h"}});
              }),
              AllOf(HasSubstr("no password"), Not(HasSubstr("secret"))));
  EXPECT_EQ(settings({{"HF_HUB_DOWNLOAD_TIMEOUT", "7"}}).stall.count(), 7);
  for (const char* seconds : {"0", "-1", "1.5", "x", "999999"})
    EXPECT_THROW(settings({{"HF_HUB_DOWNLOAD_TIMEOUT", seconds}}), InputError) << seconds;
  for (const char* yes : {"1", "true", "ON"}) EXPECT_THROW(settings({{"HF_HUB_OFFLINE", yes}}), InputError) << yes;
  EXPECT_NO_THROW(settings({{"HF_HUB_OFFLINE", "0"}}));
}

}  // namespace
}  // namespace zero
