#pragma once
// MemoryDisk: a file system in memory for several ranks. In addition to the state that programs see, it tracks what
// would remain after a power loss. Calls can be counted, made to fail, or made to kill the rank.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/files/file_calls.h"

namespace zero::testing {

/// Thrown where a rank's process is killed.
struct Killed : std::runtime_error {
  Killed() : std::runtime_error("killed") {}
};

/// Which calls fail after the first failure: none, those that change something, or all.
enum class Fails { once, changes, for_good };

/// The plan for one rank's calls, counted from 0. Every call counts, including lookups.
struct CallPlan {
  int kill_at = -1;                             // the rank is killed at this call; a write is half done
  int fail_at = -1;                             // this call fails
  int fail_with = 0;                            // with this errno
  Fails fails = Fails::once;                    // later calls that fail too
  int short_writes_of = 0;                      // maximum bytes that a write moves; 0: all
  int failed = 0;                               // number of calls that failed as planned
  std::function<int(int call)> reason_of = {};  // errno with which a call fails, or 0; empty: use fail_at and fail_with
};

class MemoryDisk {
 public:
  explicit MemoryDisk(const std::string& root);
  MemoryDisk(const MemoryDisk& other);

  /// Returns the disk after a power loss. Each unsynced write is kept, dropped or torn, and each unsynced directory
  /// change is kept or dropped.
  MemoryDisk after_power_loss(std::mt19937& random) const;

  /// True if the file system can exchange two directory names atomically.
  bool exchanges = true;

  /// Called after every call that changes something, in order.
  std::function<void(const MemoryDisk&)> observer;

  /// Returns the content of a file, so that tests can damage it. Throws if the file is missing.
  std::vector<std::byte>& content(const std::string& path);
  std::vector<std::string> files() const;  // paths of all files

  std::unique_ptr<FileCalls> calls(CallPlan* plan = nullptr);

 private:
  friend class MemoryCalls;
  struct Write {
    std::int64_t offset;
    std::vector<std::byte> data;
  };
  struct Change {  // of a directory; a rename has both names, and an exchange swaps `other` and `name`
    std::string removed, added;
    int node = -1, other = -1;
  };
  struct Node {
    bool is_directory = false;
    std::vector<std::byte> content, durable_content;
    std::vector<Write> writes;  // since the last sync
    std::map<std::string, int> entries, durable_entries;
    std::vector<Change> changes;
  };
  static void put(std::vector<std::byte>& content, const Write& write);
  static void apply(std::map<std::string, int>& entries, const Change& change);
  int find(const std::string& path) const;  // -1: none
  std::pair<int, std::string> parent_of(const std::string& path) const;
  void change(int directory, const Change& change);
  FileFacts facts(int node) const;
  void collect(int node, const std::string& path, std::vector<std::string>& found) const;

  std::string root_;
  std::vector<Node> nodes_;
  mutable std::recursive_mutex mutex_;
};

}  // namespace zero::testing
