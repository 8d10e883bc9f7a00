#pragma once
// GgufKeys: the keys of a file's architecture while they are read. It records the requested ones, so that no key that
// changes the model is ignored. No LibTorch.
#include <optional>
#include <set>
#include <string>

#include "models/formats/gguf/gguf_file.h"

namespace zero {

class GgufKeys {
 public:
  /// `prefix` is the architecture's, with the dot. The file must outlive this.
  GgufKeys(const GgufFile& file, std::string prefix) : file_(file), prefix_(std::move(prefix)) {}

  const GgufFile& file() const { return file_; }
  /// The values of keys, without the prefix. Nothing if a key is absent.
  std::optional<std::int64_t> integer(const std::string& key);
  std::optional<double> number(const std::string& key);
  std::optional<std::string> word(const std::string& key);
  /// Throws InputError if a key that may have only one value here has another.
  void expect(const std::string& key, std::int64_t value);
  void expect(const std::string& key, double value);
  /// Accepts a key that does not affect results.
  void pass_over(const std::string& key) { asked_.insert(prefix_ + key); }
  /// Throws InputError for keys of the architecture that nobody requested.
  void close() const;

 private:
  [[noreturn]] void refuse(const std::string& key, const std::string& value, const std::string& expected) const;
  const GgufFile& file_;
  std::string prefix_;
  std::set<std::string> asked_;
};

}  // namespace zero
