#pragma once
// Hub: the HTTP API of a Hugging Face hub, for one repository (its OpenAPI description, and huggingface_hub).
#include <string>
#include <vector>

#include "zero/fetch/http_client.h"
#include "zero/fetch/hub_settings.h"
#include "zero/fetch/listing.h"
#include "zero/fetch/partial_file.h"
#include "zero/fetch/patience.h"
#include "zero/fetch/repository.h"

namespace zero {

/// Every member tries again after a transient failure (Patience). It throws Error if the failure lasts too long, and
/// InputError if the hub refuses: no such repository, revision or file, or no access.
class Hub {
 public:
  /// `tries`: as in Patience. `agent`: the User-Agent.
  Hub(const HubSettings& settings, Repository repository, int tries, std::string agent);

  /// The commit of the revision.
  std::string commit();
  /// All files of a commit.
  std::vector<HubFile> files(const std::string& commit);
  /// Fetches the missing bytes. Stops when the file has its size; its hash may still be wrong.
  void read(const HubFile& file, const std::string& commit, PartialFile& partial);

 private:
  HttpAnswer ask(const std::string& address, const std::string& what, std::string& body);
  bool is_repository();
  [[noreturn]] void refuse(const HubFile& file, HttpAnswer answer, bool written) const;
  Patience patience(const std::string& what) const;

  HubSettings settings_;
  Repository repository_;
  int tries_;
  HttpClient client_;
};

}  // namespace zero
