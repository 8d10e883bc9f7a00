#include "base/process/child_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>

#include <chrono>
#include <fstream>
#include <sstream>

#include "tests/unit/message_of.h"
#include "tests/unit/temporary_folder.h"

namespace zero {
namespace {

using testing::HasSubstr;

class ChildProcess : public ::testing::Test {
 protected:
  int run(const std::vector<std::string>& words, std::optional<std::chrono::seconds> limit = std::nullopt) {
    return run_program_to_end(words, {"ZERO_WORD=given"}, folder_ / "log", limit);
  }
  std::string said() const {
    std::stringstream all;
    all << std::ifstream(folder_ / "log").rdbuf();
    return all.str();
  }
  std::string executable(const std::string& name, std::string_view content) const {
    const std::string path = folder_.write(name, content);
    ::chmod(path.c_str(), 0755);
    return path;
  }
  TemporaryFolder folder_;
};

TEST_F(ChildProcess, AnswersWithItsExitCodeAndItsOutput) {
  EXPECT_EQ(run({"sh", "-c", "echo \"$ZERO_WORD\"; echo error >&2; read line || echo end; exit 7"}), 7);
  EXPECT_EQ(said(), "given\nerror\nend\n");
  EXPECT_EQ(run({"sh", "-c", "kill -9 $$"}), 128 + 9);
  // A shell ends with these if it cannot execute another program. They are its own answers.
  for (const int code : {126, 127}) EXPECT_EQ(run({"/bin/sh", "-c", "exit " + std::to_string(code)}), code);
}

TEST_F(ChildProcess, SaysWhyAProgramIsNotExecuted) {
  const auto why = [&](const std::string& program) {
    return message_of<NotExecutedError>([&] { run({program, "word"}); });
  };
  EXPECT_THAT(why("zero-no-such-program"),
              HasSubstr("zero-no-such-program: cannot be executed: No such file or directory; is it on the PATH?"));
  EXPECT_THAT(why(folder_ / "nothing"), HasSubstr("nothing: cannot be executed: No such file or directory"));
  EXPECT_THAT(why(folder_.write("plain", "#!/bin/sh\n")), HasSubstr("cannot be executed: Permission denied"));
  EXPECT_THAT(why(executable("orphan", "#!/no/such/interpreter\n")), HasSubstr("cannot be executed: No such file"));
  // The head of a binary for a machine that does not exist. execvp() would give it to the shell.
  EXPECT_THAT(why(executable("foreign", std::string_view("\x7f"
                                                         "ELF\2\1\1\0\0\0\0\0\0\0\0\0\2\0\xff\xff",
                                                         20))),
              HasSubstr("cannot be executed: Exec format error"));
}

TEST_F(ChildProcess, EndsAtItsLimit) {
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_THAT(message_of<OutOfTimeError>([&] {
                run({"sleep", "60"}, std::chrono::seconds(1));
              }),
              HasSubstr("sleep: did not end within 1 s"));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
  EXPECT_EQ(run({"sh", "-c", "exit 124"}, std::chrono::seconds(60)), 124);
}

}  // namespace
}  // namespace zero
