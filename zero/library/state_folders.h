#pragma once
// StateFolders: the folders in which a program keeps states. One program at a time works in each, and each holds the states
// of the same models throughout the program, so that no model's state replaces another's in silence.
#include <map>
#include <memory>
#include <string>

#include "base/files/file_calls.h"

namespace zero {

/// Models by the names of their states; the one of a model that is alone is empty.
using StateOwners = std::map<std::string, std::weak_ptr<const void>>;

class StateFolders {
 public:
  explicit StateFolders(FileCalls& calls) : calls_(calls) {}
  /// Lets go of all folders.
  ~StateFolders();
  StateFolders(const StateFolders&) = delete;
  StateFolders& operator=(const StateFolders&) = delete;

  /// Keeps other programs out of the folder from now on. False: there is no such folder. Throws InputError where another
  /// program works in it, and where the system gives no answer. Warns where its file system has no locks.
  bool lock(const std::string& folder);
  /// Before the owners save to the folder, or load from it. Throws InputError where other models of this program have saved
  /// or loaded there. A load passes where those are gone.
  void check_save(const std::string& folder, const StateOwners& owners) const;
  void check_load(const std::string& folder, const StateOwners& owners) const;
  /// After they have.
  void set_owners(const std::string& folder, const StateOwners& owners);

 private:
  struct Folder {
    int lock = -1;       // -1: its file system has none
    StateOwners owners;  // empty: nobody has saved or loaded yet
  };
  const StateOwners* owners_of(const std::string& folder) const;

  FileCalls& calls_;
  std::map<std::string, Folder> folders_;  // by absolute path
};

}  // namespace zero
