#include "tests/sim/memory_disk.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace zero::testing {

/// One rank's view of the disk. A handle is the number of its node.
class MemoryCalls : public FileCalls {
 public:
  MemoryCalls(MemoryDisk& disk, CallPlan* plan) : disk_(disk), plan_(plan) {}

  int make_directory(const std::string& path) override {
    return changing([&](auto& disk) { return add(disk, path, true) < 0 ? -1 : 0; });
  }
  int create(const std::string& path, unsigned, bool) override {
    return changing([&](auto& disk) { return add(disk, path, false); });
  }
  int open_to_append(const std::string& path) override {
    return changing([&](auto& disk) {
      const int node = disk.find(path);
      return node < 0 ? add(disk, path, false) : node;
    });
  }
  int open(const std::string& path, Links) override {
    return reading([&](auto& disk) { return missing(disk.find(path)); });
  }
  int look(const std::string& path, Links, FileFacts& facts) override {
    return reading([&](auto& disk) {
      const int node = missing(disk.find(path));
      if (node >= 0) facts = disk.facts(node);
      return node < 0 ? -1 : 0;
    });
  }
  int look(int file, FileFacts& facts) override {
    return reading([&](auto& disk) {
      facts = disk.facts(file);
      return 0;
    });
  }
  int list(const std::string& path, std::vector<std::string>& names) override {
    return reading([&](auto& disk) {
      names.clear();
      const int node = missing(disk.find(path));
      if (node < 0) return -1;
      if (!disk.nodes_[node].is_directory) return errno = ENOTDIR, -1;
      for (const auto& [name, entry] : disk.nodes_[node].entries) names.push_back(name);
      return 0;
    });
  }
  int allocate(int, std::int64_t) override {
    return changing([](auto&) { return 0; });
  }
  ssize_t write(int file, const void* data, std::size_t bytes, std::int64_t offset) override {
    const auto* from = static_cast<const std::byte*>(data);
    if (plan_ && plan_->short_writes_of > 0) bytes = std::min<std::size_t>(bytes, plan_->short_writes_of);
    const auto store = [&](MemoryDisk& disk, std::size_t moved) {
      const MemoryDisk::Write write{offset, {from, from + moved}};
      MemoryDisk::put(disk.nodes_[file].content, write);
      disk.nodes_[file].writes.push_back(write);
      return ssize_t(moved);
    };
    if (plan_ && calls_ == plan_->kill_at) {
      const std::lock_guard lock(disk_.mutex_);
      store(disk_, bytes / 2);
    }
    return changing([&](auto& disk) { return store(disk, bytes); });
  }
  ssize_t read(int file, void* data, std::size_t bytes, std::int64_t offset) override {
    return reading([&](auto& disk) -> ssize_t {
      const auto& content = disk.nodes_[file].content;
      if (offset >= std::int64_t(content.size())) return 0;
      const std::size_t moved = std::min(bytes, content.size() - std::size_t(offset));
      std::memcpy(data, content.data() + offset, moved);
      return ssize_t(moved);
    });
  }
  int truncate(int file, std::int64_t bytes) override {
    return changing([&](auto& disk) {
      disk.nodes_[file].content.resize(std::size_t(bytes));
      return 0;
    });
  }
  int sync(int file) override {
    return changing([&](auto& disk) {
      auto& node = disk.nodes_[file];
      node.durable_content = node.content;
      node.writes.clear();
      return 0;
    });
  }
  int close(int) override {  // by destructors too, where nothing may be thrown
    const std::lock_guard lock(disk_.mutex_);
    return plan_ && plan_->kill_at >= 0 && calls_ >= plan_->kill_at ? -1 : passes(true) ? 0 : -1;
  }
  void pause(std::chrono::milliseconds) override {}
  int sync_directory(const std::string& path) override {
    return changing([&](auto& disk) {
      const int found = missing(disk.find(path));
      if (found < 0) return -1;
      auto& node = disk.nodes_[found];
      node.durable_entries = node.entries;
      node.changes.clear();
      return 0;
    });
  }
  int rename(const std::string& from, const std::string& to) override {
    return changing([&](auto& disk) {
      const int node = missing(disk.find(from));
      if (node < 0) return -1;
      if (const int there = disk.find(to); there >= 0 && !disk.nodes_[there].entries.empty())
        return errno = ENOTEMPTY, -1;
      disk.change(disk.parent_of(from).first, {disk.parent_of(from).second, disk.parent_of(to).second, node});
      return 0;
    });
  }
  int exchange(const std::string& one, const std::string& other) override {
    return changing([&](auto& disk) {
      if (!disk.exchanges) return errno = EINVAL, -1;
      const int first = missing(disk.find(one)), second = first < 0 ? -1 : missing(disk.find(other));
      if (second < 0) return -1;
      disk.change(disk.parent_of(one).first, {disk.parent_of(one).second, disk.parent_of(other).second, first, second});
      return 0;
    });
  }
  int lock_directory(const std::string& path) override {
    return reading([&](auto& disk) { return missing(disk.find(path)); });
  }
  int remove(const std::string& path) override {
    return changing([&](auto& disk) {
      const int node = missing(disk.find(path));
      if (node < 0) return -1;
      if (!disk.nodes_[node].entries.empty()) return errno = ENOTEMPTY, -1;
      disk.change(disk.parent_of(path).first, {disk.parent_of(path).second, "", -1});
      return 0;
    });
  }

 private:
  static int missing(int node) {
    if (node < 0) errno = ENOENT;
    return node;
  }

  static int add(MemoryDisk& disk, const std::string& path, bool is_directory) {
    const auto [parent, name] = disk.parent_of(path);
    if (parent < 0) return missing(parent);
    if (disk.find(path) >= 0) return errno = EEXIST, -1;
    disk.nodes_.emplace_back().is_directory = is_directory;
    disk.change(parent, {"", name, int(disk.nodes_.size()) - 1});
    return int(disk.nodes_.size()) - 1;
  }

  /// True if the plan lets the call happen.
  bool passes(bool changes) {
    const int number = calls_++;
    if (!plan_) return true;
    if (plan_->kill_at >= 0 && number >= plan_->kill_at) throw Killed();
    if (plan_->reason_of) {
      const int reason = plan_->reason_of(number);
      if (reason != 0) errno = reason, ++plan_->failed;
      return reason == 0;
    }
    const bool later = plan_->fails == Fails::for_good || (plan_->fails == Fails::changes && changes);
    if (plan_->fail_at < 0 || number < plan_->fail_at || (number > plan_->fail_at && !later)) return true;
    ++plan_->failed;
    errno = plan_->fail_with;
    return false;
  }

  template <class Call>
  auto changing(const Call& call) -> decltype(call(std::declval<MemoryDisk&>())) {
    const std::lock_guard lock(disk_.mutex_);
    if (!passes(true)) return -1;
    const auto result = call(disk_);
    if (result >= 0 && disk_.observer) disk_.observer(disk_);
    return result;
  }
  template <class Call>
  auto reading(const Call& call) -> decltype(call(std::declval<MemoryDisk&>())) {
    const std::lock_guard lock(disk_.mutex_);
    return passes(false) ? call(disk_) : -1;
  }

  MemoryDisk& disk_;
  CallPlan* plan_;
  int calls_ = 0;
};

MemoryDisk::MemoryDisk(const std::string& root) : root_(root) { nodes_.emplace_back().is_directory = true; }

MemoryDisk::MemoryDisk(const MemoryDisk& other)
    : exchanges(other.exchanges), root_(other.root_), nodes_(other.nodes_) {}

void MemoryDisk::put(std::vector<std::byte>& content, const Write& write) {
  const std::size_t end = std::size_t(write.offset) + write.data.size();
  if (content.size() < end) content.resize(end);
  std::copy(write.data.begin(), write.data.end(), content.begin() + write.offset);
}

void MemoryDisk::apply(std::map<std::string, int>& entries, const Change& change) {
  if (!change.removed.empty()) entries.erase(change.removed);
  if (!change.added.empty()) entries[change.added] = change.node;
  if (change.other >= 0) entries[change.removed] = change.other;
}

void MemoryDisk::change(int directory, const Change& change) {
  apply(nodes_[directory].entries, change);
  nodes_[directory].changes.push_back(change);
}

int MemoryDisk::find(const std::string& path) const {
  if (path == root_) return 0;
  if (!path.starts_with(root_)) return 0;  // directories above the root always exist
  int node = 0;
  for (std::size_t begin = root_.size() + 1; begin <= path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    const auto& entries = nodes_[node].entries;
    const auto found = entries.find(path.substr(begin, end - begin));
    if (found == entries.end()) return -1;
    node = found->second;
    begin = end + 1;
  }
  return node;
}

std::pair<int, std::string> MemoryDisk::parent_of(const std::string& path) const {
  const std::size_t slash = path.rfind('/');
  return {find(path.substr(0, slash)), path.substr(slash + 1)};
}

MemoryDisk MemoryDisk::after_power_loss(std::mt19937& random) const {
  constexpr std::size_t sector = 512;
  const std::lock_guard lock(mutex_);
  MemoryDisk left(*this);
  for (Node& node : left.nodes_) {
    node.content = node.durable_content;
    for (Write& write : node.writes) {
      const auto kind = random() % 3;
      if (kind == 0) continue;
      if (kind == 1) write.data.resize(random() % (write.data.size() / sector + 1) * sector);
      put(node.content, write);
    }
    node.entries = node.durable_entries;
    const bool in_order = random() % 2;  // as a journal keeps them, or each for itself
    std::size_t kept = in_order ? random() % (node.changes.size() + 1) : node.changes.size();
    for (std::size_t i = 0; i < kept; ++i)
      if (in_order || random() % 2) apply(node.entries, node.changes[i]);
    node.writes.clear();
    node.changes.clear();
    node.durable_content = node.content;
    node.durable_entries = node.entries;
  }
  return left;
}

std::vector<std::byte>& MemoryDisk::content(const std::string& path) {
  const int node = find(path);
  if (node < 0) throw std::runtime_error("no " + path);
  return nodes_[node].content;
}

void MemoryDisk::collect(int node, const std::string& path, std::vector<std::string>& found) const {
  if (!nodes_[node].is_directory) return found.push_back(path);
  for (const auto& [name, entry] : nodes_[node].entries) collect(entry, path + "/" + name, found);
}

std::vector<std::string> MemoryDisk::files() const {
  std::vector<std::string> found;
  collect(0, root_, found);
  return found;
}

FileFacts MemoryDisk::facts(int node) const {
  FileFacts facts;
  facts.kind = nodes_[node].is_directory ? FileFacts::Kind::directory : FileFacts::Kind::file;
  facts.mode = 0644;
  facts.owner = ::geteuid();
  facts.bytes = std::int64_t(nodes_[node].content.size());
  facts.inode = std::uint64_t(node) + 1;
  return facts;
}

std::unique_ptr<FileCalls> MemoryDisk::calls(CallPlan* plan) { return std::make_unique<MemoryCalls>(*this, plan); }

}  // namespace zero::testing
