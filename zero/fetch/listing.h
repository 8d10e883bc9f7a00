#pragma once
// Listing: the hub's answers, which name the commit of a revision and the files of a commit. They are read as hostile
// input.
#include <cstdint>
#include <string>
#include <vector>

namespace zero {

/// A file of a commit.
struct HubFile {
  std::string path;  // relative, checked by why_no_path()
  std::int64_t bytes = 0;
  // SHA-256 of the content if the hub stores it outside git (LFS, Xet), else git's SHA-1 of the blob. Lower-case
  // hexadecimal.
  std::string hash;

  bool has_sha256() const { return hash.size() == 64; }
};

/// The commit in the answer of /api/models/NAME/revision/REVISION. Throws Error if there is none. `place` names the
/// source in the message.
std::string parse_commit(const std::string& json, const std::string& place);

/// The files in a page of /api/models/NAME/tree/COMMIT?recursive=true; folders are left out. Throws Error for a
/// malformed entry, and for a path that leads out of a folder.
std::vector<HubFile> parse_tree(const std::string& json, const std::string& place);

/// Throws Error for a path that occurs twice in a listing.
void require_distinct(const std::vector<HubFile>& files, const std::string& place);

/// The address of rel="next" in a Link header (RFC 8288); empty if it has none.
std::string next_page_of(const std::string& link);

}  // namespace zero
