#include "base/files/scratch_folder.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "base/error.h"
#include "tests/unit/temporary_folder.h"

namespace {

int signals_sent = 0;

}  // namespace

// Counts the signals of this program.
extern "C" int kill(pid_t process, int signal) noexcept {
  ++signals_sent;
  return int(::syscall(SYS_kill, process, signal));
}

namespace zero {
namespace {

namespace fs = std::filesystem;

// Writes as a program would.
void write_into(const std::string& folder) {
  fs::create_directories(folder + "/disk");
  std::ofstream(folder + "/disk/states") << "states";
}

/// A process that makes a folder, writes its path to `told`, and waits to be killed. A child of it runs until `ends`
/// has an end of file.
pid_t start_process(const std::string& place, int told, const int (&ends)[2]) {
  const pid_t process = ::fork();
  if (process != 0) return process;
  ::close(ends[1]);
  const ScratchFolder folder("test", {.place = place});
  write_into(folder.path());
  if (::fork() == 0) {
    char nothing = 0;
    ::_exit(::read(ends[0], &nothing, 1) == 0 ? 0 : 1);
  }
  if (::write(told, folder.path().data(), folder.path().size()) < 0) ::_exit(1);
  while (true) ::pause();
}

TEST(ScratchFolder, IsRemovedWithAllThatIsInItUnlessKept) {
  const TemporaryFolder place;
  std::string removed, kept;
  for (const bool keep : {false, true}) {
    const ScratchFolder folder("test", {.place = place.path(), .keep = keep});
    write_into(folder.path());
    (keep ? kept : removed) = folder.path();
  }
  EXPECT_FALSE(fs::exists(removed));
  EXPECT_TRUE(fs::exists(kept + "/disk/states"));
}

TEST(ScratchFolder, TouchesNoOtherWhateverItsName) {
  const TemporaryFolder place;
  std::string kept;
  {
    const ScratchFolder folder("test", {.place = place.path(), .keep = true});
    kept = folder.path();
  }
  for (const char* name : {"zero-tests-report", "zero-test-report"}) write_into(place.path() + "/" + name);
  { const ScratchFolder folder("test", {.place = place.path()}); }
  for (const char* name : {"zero-tests-report", "zero-test-report"})
    EXPECT_TRUE(fs::exists(place.path() + "/" + name + "/disk/states")) << name;
  EXPECT_TRUE(fs::exists(kept));
}

TEST(ScratchFolder, IsRemovedAfterTheProgramsOfAKilledProcessHaveEnded) {
  const TemporaryFolder place;
  int told[2], ends[2];
  ASSERT_EQ(::pipe(told), 0);
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t process = start_process(place.path(), told[1], ends);
  ASSERT_GT(process, 0);
  ::close(ends[0]);
  char path[4096];
  const auto length = ::read(told[0], path, sizeof path);
  ASSERT_GT(length, 0);
  const std::string folder(path, std::size_t(length));
  ::kill(process, SIGKILL);
  ::waitpid(process, nullptr, 0);
  EXPECT_TRUE(fs::exists(folder + "/disk/states"));
  ::close(ends[1]);
  for (int i = 0; i < 6000 && fs::exists(folder); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_FALSE(fs::exists(folder));
  ::close(told[0]);
  ::close(told[1]);
}

TEST(ScratchFolder, OneOfTwoOutlivesTheOther) {
  const TemporaryFolder place;
  const ScratchFolder first("test", {.place = place.path()});
  write_into(first.path());
  {
    const ScratchFolder second("test", {.place = place.path()});
    EXPECT_NE(second.path(), first.path());
  }
  EXPECT_TRUE(fs::exists(first.path() + "/disk/states"));
}

TEST(ScratchFolder, TakesNoClosedStandardStream) {
  const TemporaryFolder place;
  const pid_t process = ::fork();
  if (process == 0) {
    for (const int stream : {STDIN_FILENO, STDOUT_FILENO}) ::close(stream);
    const ScratchFolder folder("test", {.place = place.path()});
    ::_exit(::fcntl(STDIN_FILENO, F_GETFD) < 0 && ::fcntl(STDOUT_FILENO, F_GETFD) < 0 ? 0 : 1);
  }
  int status = 1;
  ASSERT_EQ(::waitpid(process, &status, 0), process);
  EXPECT_EQ(status, 0);
}

/// The only child of this process; 0 if the kernel does not list them.
pid_t only_child() {
  pid_t child = 0;
  std::ifstream("/proc/self/task/" + std::to_string(::getpid()) + "/children") >> child;
  return child;
}

TEST(ScratchFolder, KillsNoOtherProcessWhereItsWatcherIsGone) {
  constexpr int not_listed = 77;
  const TemporaryFolder place;
  const pid_t process = ::fork();
  if (process == 0) {
    std::signal(SIGCHLD, SIG_IGN);  // children vanish as they end
    {
      const ScratchFolder folder("test", {.place = place.path()});
      const pid_t watcher = only_child();
      if (watcher == 0) ::_exit(not_listed);
      ::kill(watcher, SIGKILL);
      while (fs::exists("/proc/" + std::to_string(watcher))) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      signals_sent = 0;
    }
    ::_exit(signals_sent == 0 && fs::is_empty(place.path()) ? 0 : 1);
  }
  int status = 1;
  ASSERT_EQ(::waitpid(process, &status, 0), process);
  if (WEXITSTATUS(status) == not_listed) GTEST_SKIP() << "the kernel does not list children";
  EXPECT_EQ(status, 0);
}

TEST(ScratchFolder, NamesThePlaceWhereNoneCanBeMade) {
  const TemporaryFolder place;
  EXPECT_THROW(ScratchFolder("test", {.place = place.path() + "/nowhere"}), InputError);
}

}  // namespace
}  // namespace zero
