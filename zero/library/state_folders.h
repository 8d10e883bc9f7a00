#pragma once
// StateFolders: the folders in which a program keeps states. Only one program at a time may use a folder. A folder
// holds the same models for the whole program, so no model silently replaces another's state.
#include <map>
#include <memory>
#include <string>

#include "base/files/file_calls.h"

namespace zero {

/// Models by the names of their states; a single model has an empty name.
using StateOwners = std::map<std::string, std::weak_ptr<const void>>;

class StateFolders {
 public:
  explicit StateFolders(FileCalls& calls) : calls_(calls) {}
  /// Releases all folders.
  ~StateFolders();
  StateFolders(const StateFolders&) = delete;
  StateFolders& operator=(const StateFolders&) = delete;

  /// Locks the folder against other programs. Returns false if the folder does not exist. Throws InputError if another
  /// program uses it or if the system cannot tell. Warns if the folder's file system does not support locks.
  bool lock(const std::string& folder);
  /// Call it before the owners save to the folder or load from it. Throws InputError if other models of this program
  /// have used the folder. A load is allowed if those models no longer exist.
  void check_save(const std::string& folder, const StateOwners& owners) const;
  void check_load(const std::string& folder, const StateOwners& owners) const;
  /// Call it after saving or loading.
  void set_owners(const std::string& folder, const StateOwners& owners);

 private:
  struct Folder {
    int lock = -1;       // -1: the file system has no locks
    StateOwners owners;  // empty: not saved or loaded yet
  };
  const StateOwners* owners_of(const std::string& folder) const;

  FileCalls& calls_;
  std::map<std::string, Folder> folders_;  // by absolute path
};

}  // namespace zero
