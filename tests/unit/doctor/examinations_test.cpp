#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/process/control_group.h"
#include "tests/unit/temporary_folder.h"
#include "zero/doctor/finding.h"
#include "zero/doctor/processor.h"
#include "zero/doctor/storage.h"

namespace zero {
namespace {

const std::string v3 = "fpu avx2 fma bmi1 bmi2 f16c movbe abm";

void write(const std::string& path, const std::string& content) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path) << content;
}

TEST(Processor, NamesInstructionsThatItHasAndLacks) {
  const Finding found =
      examine_processor("model name\t: X\nflags\t\t: " + v3 + " avx512f avx512bw avx512dq avx512vl\n");
  EXPECT_EQ(found.verdict, Verdict::ok);
  EXPECT_EQ(found.words, "X: AVX2, AVX-512; without AVX512-BF16, AMX");
}

TEST(Processor, IsAFaultWithoutWhatProgramsNeed) {
  EXPECT_EQ(examine_processor("flags\t\t: fpu avx2 fma\n").verdict, Verdict::fault);
  EXPECT_EQ(examine_processor("Features\t: fp asimd\n").verdict, Verdict::fault);
  EXPECT_EQ(examine_processor("Features\t: fp asimd crc32 sve\n").words, "NEON, CRC-32, SVE; without BF16");
}

TEST(Processor, IsUnknownWhereTheSystemDoesNotAnswer) { EXPECT_EQ(examine_processor("").verdict, Verdict::unknown); }

TEST(ControlGroup, TakesTheLeastLimitOfTheGroupAndItsParents) {
  const TemporaryFolder folder;
  const std::string root = folder.path();
  EXPECT_EQ(control_group_cores(root), 0);
  write(root + "/proc/self/cgroup", "0::/a/b\n");
  write(root + "/sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  EXPECT_EQ(control_group_cores(root), 0);
  write(root + "/sys/fs/cgroup/a/cpu.max", "150000 100000\n");
  write(root + "/sys/fs/cgroup/cpu.max", "400000 100000\n");
  EXPECT_EQ(control_group_cores(root), 1.5);
}

TEST(ControlGroup, ReadsVersionOne) {
  const TemporaryFolder folder;
  const std::string root = folder.path();
  write(root + "/proc/self/cgroup", "4:cpu,cpuacct:/job\n3:memory:/other\n");
  write(root + "/sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "50000\n");
  write(root + "/sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(control_group_cores(root), 0.5);
}

TEST(Cores, AreAWarningIfThreadsWouldWaitForEachOther) {
  const TemporaryFolder folder;
  write(folder.path() + "/sys/fs/cgroup/cpu.max", "50000 100000\n");
  EXPECT_EQ(examine_cores(nullptr, folder.path()).verdict, Verdict::warning);
  EXPECT_EQ(examine_cores("1", folder.path()).verdict, Verdict::ok);
}

TEST(Memory, IsUnknownWithoutProc) {
  const TemporaryFolder folder;
  EXPECT_EQ(examine_memory(folder.path()).verdict, Verdict::unknown);
  write(folder.path() + "/proc/meminfo", "MemTotal: 4194304 kB\nMemAvailable: 524288 kB\n");
  EXPECT_EQ(examine_memory(folder.path()).verdict, Verdict::warning);
}

TEST(Disk, LeavesNothingBehind) {
  const TemporaryFolder folder;
  const Finding found = examine_disk(folder.path(), std::int64_t(16) << 20);
  EXPECT_TRUE(found.verdict == Verdict::ok || found.words.find("page cache") != std::string::npos) << found.words;
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(Disk, IsUnknownWhereNothingCanBeWritten) {
  EXPECT_EQ(examine_disk("/proc/self").verdict == Verdict::ok, false);
  EXPECT_EQ(examine_disk("/nowhere/at/all").verdict, Verdict::unknown);
}

TEST(Findings, AreFaultsOnlyIfOneIs) {
  const Finding ok{"a", Verdict::ok, "fine", ""}, warning{"b", Verdict::warning, "slow", "help"},
      unknown{"c", Verdict::unknown, "no answer", "ask"}, fault{"d", Verdict::fault, "gone", "get it"};
  EXPECT_FALSE(any_fault({ok, warning, unknown}));
  EXPECT_TRUE(any_fault({ok, fault, unknown}));
  EXPECT_EQ(text_of(warning), "warning  b              slow\n                        help\n");
  const auto json = nlohmann::json::parse(json_of({ok, warning, unknown}, "zero_doctor 1"));
  EXPECT_EQ(json["verdict"], "unknown");
  EXPECT_EQ(json["findings"][1]["remedy"], "help");
}

}  // namespace
}  // namespace zero
