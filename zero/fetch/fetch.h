#pragma once
// Fetch: the order of a fetch, from a repository's name to a folder with its files.
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
  int tries = 6;           // failures in a row that are waited for
  std::string agent;       // User-Agent
};

/// Fetches the selected files of the commit that the revision names now, and returns the folder that holds them. Each
/// file is complete, synced and equal to the hub's hash before it has its name. Logs progress.
///
/// Throws InputError, with nothing written, for a refusal of the hub, a selection without files, a disk without room,
/// and a folder that cannot be written to. Throws Error for a hub that fails for too long, a wrong hash or a disk that
/// fails; what has arrived stays, and the next fetch goes on from there.
std::string fetch(const FetchOptions& options, const HubSettings& settings);

}  // namespace zero
