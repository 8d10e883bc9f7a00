#pragma once
// Fetch: the steps of a fetch, from a repository's name to a folder with its files.
#include <string>

#include "zero/fetch/hub_settings.h"
#include "zero/fetch/repository.h"
#include "zero/fetch/selection.h"

namespace zero {

struct FetchOptions {
  Repository repository;
  Selection selection;
  std::string to;          // the folder; empty: the hub's cache
  bool overwrite = false;  // replace files of that folder that differ
  int tries = 6;           // failures in a row after which the fetch still tries again
  std::string agent;       // User-Agent
};

/// Fetches the selected files of the commit that the revision names now, and returns the folder that holds them. A file
/// gets its name only when it is complete, synced and equal to the hub's hash. Logs progress.
///
/// Throws InputError, before anything is written, if the hub refuses or the selection has no files. Also throws
/// InputError if the disk has too little space or the folder cannot be written to. Throws Error if the hub fails for
/// too long, a hash is wrong, or the disk fails. Bytes that have arrived stay, and the next fetch continues after them.
std::string fetch(const FetchOptions& options, const HubSettings& settings);

}  // namespace zero
