#include "base/files/free_space.h"

#include <gtest/gtest.h>

#include <filesystem>

namespace zero {
namespace {

TEST(FreeDisk, IsAskedOfTheNearestFolderThatExists) {
  EXPECT_GT(free_disk_bytes(std::filesystem::temp_directory_path() / "not" / "there"), 0);
}

}  // namespace
}  // namespace zero
