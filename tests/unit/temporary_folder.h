#pragma once
// A separate folder for one test, removed at the test's end.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace zero {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "zero-test-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string path(const std::string& name) const { return path_ + "/" + name; }
  std::string operator/(const std::string& name) const { return path(name); }

  std::string write(const std::string& name, std::string_view content) const {
    std::ofstream(path(name), std::ios::binary).write(content.data(), static_cast<std::streamsize>(content.size()));
    return path(name);
  }

  /// Little-endian, as a .bin file holds them.
  template <class Id>
  std::string write_ids(const std::string& name, const std::vector<Id>& ids) const {
    return write(name, {reinterpret_cast<const char*>(ids.data()), ids.size() * sizeof(Id)});
  }

 private:
  std::string path_;
};

}  // namespace zero
