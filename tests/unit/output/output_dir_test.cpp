#include "zero/output/output_dir.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "models/formats/safetensors_writer.h"
#include "zero/output/result_folder.h"
#include "zero/output/run_lock.h"
#include "zero/output/run_mark.h"

namespace zero {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class OutputDir : public ::testing::Test {
 public:
  ~OutputDir() override { fs::remove_all(home); }

 protected:
  OutputDir() {
    std::string name = (fs::temp_directory_path() / "zero-train-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
    home = name;
  }

  std::string path(const std::string& name) const { return (home / name).string(); }
  std::string write(const std::string& name) const {
    fs::create_directories((home / name).parent_path());
    std::ofstream(home / name) << "content";
    return path(name);
  }
  std::string refusal(FormerRun former, const std::vector<ReadPath>& reads = {}) const {
    try {
      check_output_dir(path("out"), former, reads, calls);
      return "accepted";
    } catch (const InputError& error) {
      return error.what();
    }
  }
  // The files that a run leaves.
  void run() const {
    prepare_output_dir(path("out"), FormerRun::refused, {}, "resolved", "1", calls);
    for (const char* name :
         {"out/metrics.jsonl", "out/checkpoints/step-00000004/manifest.json",
          "out/checkpoints/step-00000004/rank-00000.states", "out/checkpoints/step-00000005.tmp/rank-00001.states",
          "out/checkpoints/step-00000003.damaged/manifest.json", "out/checkpoints/step-00000009.later/manifest.json",
          "out/checkpoints/step-00000002.replaced/manifest.json", "out/model/model-00001-of-00002.safetensors",
          "out/model/config.json", "out/model/tokenizer.model"})
      write(name);
    mark_folder(path("out/model"), Mark::result, calls);
  }

  fs::path home;
  mutable FileCalls calls;
};

TEST_F(OutputDir, IsMarkedAndRefusedToTheNextRunAndGivenToOneThatOverwrites) {
  EXPECT_EQ(refusal(FormerRun::refused), "accepted");
  EXPECT_THAT(refusal(FormerRun::resumed), HasSubstr("holds no run to resume"));
  run();
  EXPECT_TRUE(is_marked(path("out"), Mark::run));
  EXPECT_FALSE(is_marked(path("out"), Mark::result));
  EXPECT_THAT(refusal(FormerRun::refused),
              ::testing::AllOf(HasSubstr("holds a run already (metrics.jsonl)"), HasSubstr("pass --resume")));
  EXPECT_THROW(prepare_output_dir(path("out"), FormerRun::refused, {}, "new", "2", calls),
               InputError);  // it looks again itself
  EXPECT_EQ(refusal(FormerRun::resumed), "accepted");
  EXPECT_EQ(refusal(FormerRun::overwritten), "accepted");
  prepare_output_dir(path("out"), FormerRun::overwritten, {}, "new", "2", calls);
  std::vector<std::string> left;
  for (const auto& entry : fs::directory_iterator(path("out"))) left.push_back(entry.path().filename().string());
  EXPECT_THAT(left, ::testing::UnorderedElementsAre(".zero_run", "config.toml"));
}

TEST_F(OutputDir, KeepsEveryFileThatNoRunWrites) {
  run();
  const std::vector<std::string> guests = {"out/model/net.py",
                                           "out/model/sub/config.json",
                                           "out/checkpoints/best.pt",
                                           "out/checkpoints/step-1/manifest.json",
                                           "out/checkpoints/step-00000004.kept/a",
                                           "out/checkpoints/step-00000006",
                                           "out/notes",
                                           "out/token_cache/t.tokens",
                                           "other/model.safetensors"};
  for (const std::string& guest : guests) write(guest);
  fs::create_directory_symlink(path("other"), path("out/checkpoints/step-00000009"));
  write("other/manifest.json");
  write("out/checkpoints/step-00000004/notes");
  write("out/token_cache/t.tokens.tmp-0123456789abcdef");
  prepare_output_dir(path("out"), FormerRun::overwritten, {}, "new", "2", calls);
  for (const std::string& guest : guests) EXPECT_TRUE(fs::exists(path(guest))) << guest;
  EXPECT_TRUE(fs::exists(path("other/manifest.json")));
  EXPECT_TRUE(fs::exists(path("out/checkpoints/step-00000004.kept-2/notes")));
  EXPECT_TRUE(is_marked(path("out/model"), Mark::result));  // or the next run would not write there
  EXPECT_FALSE(fs::exists(fs::symlink_status(path("out/checkpoints/step-00000009"))));
  for (const char* name : {"out/model/config.json", "out/metrics.jsonl", "out/checkpoints/step-00000004",
                           "out/checkpoints/step-00000005.tmp", "out/token_cache/t.tokens.tmp-0123456789abcdef"})
    EXPECT_FALSE(fs::exists(path(name))) << name;
}

TEST_F(OutputDir, RefusesWhatHasNoMark) {
  for (const char* name : {"metrics.jsonl", "config.toml", "checkpoints/best.pt", "model/net.py", "adapter/x"}) {
    for (const bool marked : {false, true}) {
      const std::string file = write(std::string("out/") + name);
      if (marked) mark_folder(path("out"), Mark::run, calls);
      const bool taken = marked && std::string(name).find("model/") == std::string::npos &&
                         std::string(name).find("adapter/") == std::string::npos;
      EXPECT_THAT(refusal(FormerRun::overwritten), HasSubstr(taken ? "accepted" : "no mark")) << name;
      EXPECT_TRUE(fs::exists(file));
      fs::remove_all(path("out"));
    }
  }
}

TEST_F(OutputDir, EmptyFoldersAreNoResult) {
  run();
  fs::create_directory(path("out/adapter"));  // its mark found no room
  for (const FormerRun former : {FormerRun::resumed, FormerRun::overwritten}) EXPECT_EQ(refusal(former), "accepted");
  prepare_output_dir(path("out"), FormerRun::overwritten, {}, "new", "2", calls);
  fs::create_directory(path("out/model"));
  EXPECT_FALSE(holds_result(path("out"), calls));
}

TEST_F(OutputDir, TheBeginningOfAMarkIsNoResult) {
  run();
  fs::create_directory(path("out/model"));
  write("out/model/.zero_result.tmp-0123456789abcdef");  // a disk that failed for good kept it
  for (const FormerRun former : {FormerRun::resumed, FormerRun::overwritten}) EXPECT_EQ(refusal(former), "accepted");
  prepare_output_dir(path("out"), FormerRun::overwritten, {}, "new", "2", calls);
  EXPECT_FALSE(fs::exists(path("out/model/.zero_result.tmp-0123456789abcdef")));
  write("out/model/mine.txt");
  EXPECT_NE(refusal(FormerRun::overwritten), "accepted");
}

TEST_F(OutputDir, LinksAreRefusedAndNotFollowed) {
  for (const char* name : {"model", "adapter", "checkpoints"}) {
    run();
    const std::string archived = write(std::string("archive/") + name + "/config.json"),
                      link = path(std::string("out/") + name);
    mark_folder(path(std::string("archive/") + name), Mark::result, calls);
    fs::remove_all(link);
    fs::create_directory_symlink(path(std::string("archive/") + name), link);
    EXPECT_THAT(refusal(FormerRun::overwritten), HasSubstr("is a link to")) << name;
    EXPECT_THAT(refusal(FormerRun::resumed),
                HasSubstr(std::string(name) == "checkpoints" ? "accepted" : "is a link to"))
        << name;
    EXPECT_TRUE(fs::exists(archived));
    fs::remove_all(path("out"));
  }
}

TEST_F(OutputDir, IsNoModelsFolder) {
  for (const char* name : {"config.json", "adapter_config.json"}) {
    write(std::string("out/") + name);
    for (const FormerRun former : {FormerRun::refused, FormerRun::resumed, FormerRun::overwritten})
      EXPECT_THAT(refusal(former), HasSubstr("is the folder of a model")) << name;
    fs::remove_all(path("out"));
  }
}

TEST_F(OutputDir, OnlyARunWithACheckpointCanBeResumed) {
  run();
  fs::remove(path("out/checkpoints/step-00000004/manifest.json"));  // the rest is not complete
  for (const char* left : {"out/checkpoints", "out/model"}) {
    EXPECT_THAT(refusal(FormerRun::refused),
                ::testing::AllOf(HasSubstr("no checkpoint to go on from"), HasSubstr("pass --overwrite"),
                                 ::testing::Not(HasSubstr("--resume"))));
    fs::remove_all(path(left));
  }
}

TEST_F(OutputDir, AnUnmarkedRunMayBeResumed) {
  run();
  fs::remove(path("out/.zero_run"));
  EXPECT_THAT(refusal(FormerRun::refused), ::testing::AllOf(HasSubstr("no mark"), HasSubstr("pass --resume")));
  EXPECT_EQ(refusal(FormerRun::resumed), "accepted");
  fs::remove(path("out/model/.zero_result"));
  EXPECT_THAT(refusal(FormerRun::refused),
              ::testing::AllOf(HasSubstr("no mark"), ::testing::Not(HasSubstr("pass --resume"))));
}

TEST_F(OutputDir, TheMarkKnowsOfCheckpointsUntilAnotherRunBegins) {
  run();
  EXPECT_FALSE(has_saved(path("out"), calls));
  note_saved(path("out"), calls);
  EXPECT_TRUE(has_saved(path("out"), calls) && is_marked(path("out"), Mark::run));
  prepare_output_dir(path("out"), FormerRun::resumed, {}, "new", "2", calls);
  EXPECT_TRUE(has_saved(path("out"), calls));
  prepare_output_dir(path("out"), FormerRun::overwritten, {}, "new", "2", calls);
  EXPECT_FALSE(has_saved(path("out"), calls));
  EXPECT_TRUE(is_marked(path("out"), Mark::run));
}

// Nothing is removed or taken for absent while a folder cannot be looked at.
TEST_F(OutputDir, AFolderThatCannotBeLookedAtIsRefused) {
  struct BlindCalls final : FileCalls {
    using FileCalls::look;
    int look(const std::string& path, Links links, FileFacts& facts) override {
      return path.ends_with(blind) ? (errno = ESTALE, -1) : FileCalls::look(path, links, facts);
    }
    int list(const std::string& path, std::vector<std::string>& names) override {
      return path.ends_with(blind) ? (errno = ESTALE, -1) : FileCalls::list(path, names);
    }
    void pause(std::chrono::milliseconds) override {}
    std::string blind;
  } blind;
  run();
  for (const char* place : {"out", "config.toml", "metrics.jsonl", "checkpoints", "model", ".zero_run"}) {
    blind.blind = place;
    for (const FormerRun former : {FormerRun::refused, FormerRun::overwritten})
      EXPECT_THROW(prepare_output_dir(path("out"), former, {}, "new", "2", blind), InputError) << place;
  }
  EXPECT_TRUE(fs::exists(path("out/checkpoints/step-00000004/rank-00000.states")));
  EXPECT_TRUE(fs::exists(path("out/model/config.json")));
  EXPECT_TRUE(fs::exists(path("out/metrics.jsonl")));
}

TEST_F(OutputDir, AnUnfinishedResultLeavesNothingAndAFinishedOneNothingOfTheFormer) {
  const auto begun = [&](const char* file, bool finish) {
    ResultFolder folder(path("result"));
    folder.mark();
    fs::remove(path("result") + "/" + file);
    write(std::string("result/") + file);
    if (finish) folder.finish();
  };
  begun("config.json", false);
  EXPECT_FALSE(fs::exists(path("result")));
  begun("config.json", true);
  write("result/notes");
  begun("adapter_config.json", false);  // a result is there: it stays
  EXPECT_TRUE(fs::exists(path("result/config.json")));
  begun("adapter_model.safetensors", true);
  std::vector<std::string> left;
  for (const auto& entry : fs::directory_iterator(path("result"))) left.push_back(entry.path().filename().string());
  EXPECT_THAT(left, ::testing::UnorderedElementsAre(".zero_result", "adapter_model.safetensors", "notes"));
}

TEST_F(OutputDir, TensorFilesReplaceOnlyTensorFiles) {
  const auto refused = [&](const std::string& file) {
    try {
      check_tensor_file("KEY", file, {{"model.path", path("model")}});
      return std::string("accepted");
    } catch (const InputError& error) {
      return std::string(error.what());
    }
  };
  SafetensorsWriter(write("model/model.safetensors"), {}).finish();
  SafetensorsWriter(path("dump"), {}).finish();
  write("notes");
  EXPECT_EQ(refused(path("dump")), "accepted");
  EXPECT_EQ(refused(path("new")), "accepted");
  EXPECT_THAT(refused(path("model/model.safetensors")), HasSubstr("(model.path) is read there"));
  EXPECT_THAT(refused(path("notes")), HasSubstr("holds no tensors"));
}

TEST_F(OutputDir, RefusesWhatTheRunReads) {
  run();
  const std::string elsewhere = write("elsewhere/model.safetensors");
  const auto refused = [&](const std::string& read, FormerRun former = FormerRun::overwritten) {
    return refusal(former, {{"model.path", read}});
  };
  EXPECT_EQ(refused(path("elsewhere")), "accepted");
  EXPECT_EQ(refused(path("nowhere")), "accepted");
  for (const char* read : {"out/model", "out/model/", "out/../out/model", "out/model/config.json",
                           "out/checkpoints/step-00000004", "out/config.toml", "out/metrics.jsonl"})
    EXPECT_THAT(refused(path(read)), HasSubstr("model.path")) << read;
  EXPECT_THAT(refused(path("out/model"), FormerRun::resumed), HasSubstr("model.path"));
  EXPECT_EQ(refused(path("out/config.toml"), FormerRun::resumed), "accepted");
  fs::create_directory_symlink(path("out"), path("link"));
  EXPECT_THAT(refused(path("link/model")), HasSubstr("model.path"));
  fs::create_symlink(path("out/model/config.json"), path("elsewhere/config.json"));  // a folder of links
  EXPECT_THAT(refused(path("elsewhere")), HasSubstr("elsewhere/config.json (model.path)"));
}

TEST_F(OutputDir, AHardLinkIsTheSameFile) {
  const std::string file = write("model/model.safetensors");
  fs::create_hard_link(file, path("other.gguf"));
  EXPECT_TRUE(first_read_of({{"the model", path("model")}}, path("other.gguf")));
  write("third.gguf");
  EXPECT_FALSE(first_read_of({{"the model", path("model")}, {"", ""}}, path("third.gguf")));
}

TEST_F(OutputDir, LockIsHeldByOneAndLeavesNoEmptyFolders) {
  const auto second = [&] {
    try {
      const RunLock lock(path("a/b/c"), calls);
      return std::string("accepted");
    } catch (const InputError& error) {
      return std::string(error.what());
    }
  };
  {
    const RunLock lock(path("a/b/c/"), calls);
    EXPECT_THAT(second(), HasSubstr("is in use by another run"));
  }
  EXPECT_FALSE(fs::exists(path("a")));
  EXPECT_EQ(second(), "accepted");
  {
    const RunLock lock(path("a/b/c"), calls);
    write("a/b/file");
  }
  EXPECT_FALSE(fs::exists(path("a/b/c")));
  EXPECT_TRUE(fs::exists(path("a/b/file")));
  EXPECT_THROW(RunLock(path("a/b/file/c"), calls), InputError);
}

TEST_F(OutputDir, ALockThatFailsIsNoFileSystemWithoutLocks) {
  class Locks : public FileCalls {
   public:
    explicit Locks(int reason) : reason_(reason) {}
    int lock_directory(const std::string&) override { return errno = reason_, -1; }
    void pause(std::chrono::milliseconds) override {}

   private:
    int reason_;
  };
  for (const int reason : {EIO, ESTALE, ENOMEM}) {
    Locks fail(reason);
    EXPECT_THROW(RunLock(path("a/b"), fail), InputError) << reason;
    EXPECT_FALSE(fs::exists(path("a"))) << "a start that is refused leaves nothing behind";
  }
  Locks none(ENOLCK);
  testing::internal::CaptureStderr();
  EXPECT_NO_THROW(RunLock(path("a/b"), none));
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("has no locks"));
}

TEST_F(OutputDir, AConfigurationThatNoRunWroteIsNotResumed) {
  write("out/config.toml");
  EXPECT_THAT(refusal(FormerRun::resumed), HasSubstr("holds config.toml, but no checkpoint and no mark"));
  write("out/checkpoints/step-00000004/manifest.json");  // of a version without marks
  EXPECT_EQ(refusal(FormerRun::resumed), "accepted");
}

}  // namespace
}  // namespace zero
