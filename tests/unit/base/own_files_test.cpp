#include "base/files/own_files.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <filesystem>

#include "base/error.h"
#include "tests/unit/message_of.h"
#include "tests/unit/temporary_folder.h"

namespace zero {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class OwnFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* folder : {"model/a", "elsewhere", "models--x--y/blobs", "blobs"})
      fs::create_directories(place / folder);
    place.write("secret", "s");
    place.write("model/config.json", "{}");
  }
  std::string refusal() const {
    return message_of<InputError>([&] { require_own_files(place / "model"); });
  }
  void link(const std::string& target, const std::string& name) const {
    fs::create_symlink(target, place / ("model/" + name));
  }

  TemporaryFolder place;
};

TEST_F(OwnFiles, TakesFilesAndLinksThatAModelMayHave) {
  place.write("model/a/b.json", "{}");
  link("a/b.json", "inside.json");
  place.write("elsewhere/tokenizer.json", "{}");
  link("../elsewhere/tokenizer.json", "tokenizer.json");
  place.write("models--x--y/blobs/0a1b", "{}");
  link(fs::path(place / "models--x--y/blobs/0a1b").string(), "model.safetensors");
  link("nowhere", "generation_config.json");
  link("../secret", "notes");  // which nobody reads
  EXPECT_NO_THROW(require_own_files(place / "model"));
  EXPECT_NO_THROW(require_own_files(place / "absent"));
  fs::create_directory_symlink(place / "model", place / "link");
  EXPECT_NO_THROW(require_own_files(place / "link"));
}

TEST_F(OwnFiles, RefusesLinksToOtherFiles) {
  for (const char* name : {"chat_template.jinja", "config2.json", "m.safetensors", "tokenizer.model", "merges.txt"}) {
    link("../secret", name);
    EXPECT_THAT(refusal(), AllOf(HasSubstr("model/" + std::string(name) + ": is a link to "), HasSubstr("/secret")));
    fs::remove(place / ("model/" + std::string(name)));
  }
  place.write("blobs/0a1b", "s");
  link("../blobs/0a1b", "a.json");
  EXPECT_THAT(refusal(), HasSubstr("a.json: is a link to ")) << "no cache of models";
}

TEST_F(OwnFiles, RefusesDevicesAndPipes) {
  link("/dev/zero", "a.json");
  EXPECT_THAT(refusal(), HasSubstr("a.json: is no regular file"));
  fs::remove(place / "model/a.json");
  ASSERT_EQ(::mkfifo((place / "model/b.json").c_str(), 0600), 0);
  EXPECT_THAT(refusal(), HasSubstr("b.json: is no regular file"));
}

}  // namespace
}  // namespace zero
