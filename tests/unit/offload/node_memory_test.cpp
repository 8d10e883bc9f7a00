#include "offload/memory/node_memory.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace zero {
namespace {

class NodeMemoryFiles : public ::testing::Test {
 protected:
  NodeMemoryFiles() : root_(std::filesystem::temp_directory_path() / ("node-memory-" + std::to_string(::getpid()))) {
    write("proc/meminfo", "MemTotal:       1000 kB\nMemAvailable:    800 kB\n");
  }
  ~NodeMemoryFiles() override { std::filesystem::remove_all(root_); }

  void write(const std::string& name, const std::string& content) {
    std::filesystem::create_directories((root_ / name).parent_path());
    std::ofstream(root_ / name) << content;
  }

  std::filesystem::path root_;
};

TEST_F(NodeMemoryFiles, MemAvailableCountsWithoutALimit) {
  write("sys/fs/cgroup/memory.max", "max\n");
  write("sys/fs/cgroup/memory.current", "5000\n");
  const NodeMemory memory = node_memory(root_);
  EXPECT_EQ(memory.available, 800 * 1024);
  EXPECT_EQ(memory.source, "MemAvailable");
  EXPECT_EQ(memory.used, 200 * 1024);
}

TEST_F(NodeMemoryFiles, TheLimitOfAnOuterGroupCounts) {
  write("proc/self/cgroup", "0::/job/step\n");
  write("sys/fs/cgroup/job/step/memory.max", "max\n");
  write("sys/fs/cgroup/job/step/memory.current", "50000\n");
  write("sys/fs/cgroup/job/memory.max", "200000\n");
  write("sys/fs/cgroup/job/memory.current", "90000\n");
  write("sys/fs/cgroup/job/memory.stat", "anon 60000\ninactive_file 30000\n");
  EXPECT_EQ(node_memory(root_).available, 200000 - 90000 + 30000);
}

TEST_F(NodeMemoryFiles, TheFirstVersionOfControlGroupsIsRead) {
  write("proc/self/cgroup", "4:memory:/docker/abc\n");  // the host's path, which a container does not see
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "300000\n");
  write("sys/fs/cgroup/memory/memory.usage_in_bytes", "100000\n");
  EXPECT_EQ(node_memory(root_).available, 200000);
  EXPECT_EQ(node_memory(root_).source, "the control group's limit");
}

}  // namespace
}  // namespace zero
