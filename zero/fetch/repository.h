#pragma once
// Repository: a model or data set of a hub, at a revision.
#include <cstdint>
#include <string>

namespace zero {

enum class RepositoryKind : std::uint8_t { model, dataset };

struct Repository {
  RepositoryKind kind = RepositoryKind::model;
  std::string name;               // "OWNER/NAME", or "NAME" for some old ones
  std::string revision = "main";  // a branch, a tag, a commit, or "refs/pr/N"

  /// Parses "NAME" or "NAME@REVISION". Throws InputError with the rule.
  static Repository parse(const std::string& words, RepositoryKind kind);

  /// "/api/models/OWNER/NAME"
  std::string api_path() const;
  /// The path of its page: "/OWNER/NAME", or "/datasets/OWNER/NAME".
  std::string page_path() const;
  /// The path of a file's content at a commit, percent-encoded.
  std::string file_path(const std::string& commit, const std::string& file) const;
  /// Its folder in the hub's cache: "models--OWNER--NAME" (huggingface_hub, "Understand caching").
  std::string cache_name() const;
};

/// Percent-encodes all bytes but letters, digits and "-._~", and keeps those in `kept` (RFC 3986).
std::string percent_encoded(const std::string& text, const std::string& kept = "");

/// True for a commit's full name: 40 digits of lower-case hexadecimal.
bool is_commit(const std::string& revision);

/// Returns why a relative path cannot name a file below a folder; empty if it can. Absolute paths, "." and "..",
/// ".git", backslashes, control characters, and names that are too long are refused.
std::string why_no_path(const std::string& path);

}  // namespace zero
