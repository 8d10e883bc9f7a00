#pragma once
// MemoryDisk: a file system in memory for several ranks. Besides the state that programs see it has a second one: the
// remains if the power went now. Its calls can be counted, made to fail, or be the last that a rank makes.
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

/// A rank's process ended here.
struct Killed : std::runtime_error {
  Killed() : std::runtime_error("killed") {}
};

/// The calls that fail after the first failure: none, those that change something, or all.
enum class Fails { once, changes, for_good };

/// The plan for one rank's calls, counted from 0. Every call counts, including lookups.
struct CallPlan {
  int kill_at = -1;                             // from this call on nothing happens; a write is half done
  int fail_at = -1;                             // this call fails
  int fail_with = 0;                            // with this errno
  Fails fails = Fails::once;                    // later calls that fail too
  int short_writes_of = 0;                      // writes move so many bytes at most; 0: all
  int failed = 0;                               // calls that failed by the plan
  std::function<int(int call)> reason_of = {};  // errno with which a call fails, 0 if it does not; empty: fail_at and
                                                // fail_with decide
};

class MemoryDisk {
 public:
  explicit MemoryDisk(const std::string& root);
  MemoryDisk(const MemoryDisk& other);

  /// The disk after a loss of power. Unsynced writes are kept, dropped or torn one by one, and unsynced changes of
  /// directories kept or not.
  MemoryDisk after_power_loss(std::mt19937& random) const;

  /// True if names of its directories can change places in one step.
  bool exchanges = true;

  /// Called after every call that changes something, in their order.
  std::function<void(const MemoryDisk&)> observer;

  /// For tests of damage: the content of a file, to be changed. Throws if the file is missing.
  std::vector<std::byte>& content(const std::string& path);
  std::vector<std::string> files() const;  // paths of all

  std::unique_ptr<FileCalls> calls(CallPlan* plan = nullptr);

 private:
  friend class MemoryCalls;
  struct Write {
    std::int64_t offset;
    std::vector<std::byte> data;
  };
  struct Change {  // of a directory; a rename has both names, and an exchange puts `other` in the place of `name`
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
