#pragma once
// GgufKeys: reads the keys of a file's architecture. It records which keys were read, so that no key that changes the
// model is ignored. Does not include LibTorch.
#include <optional>
#include <set>
#include <string>

#include "models/formats/gguf/gguf_file.h"

namespace zero {

class GgufKeys {
 public:
  /// `prefix` is the architecture's prefix, including the dot. The file must outlive this object.
  GgufKeys(const GgufFile& file, std::string prefix) : file_(file), prefix_(std::move(prefix)) {}

  const GgufFile& file() const { return file_; }
  /// The value of a key, which is given without the prefix. Returns nothing if the key is absent.
  std::optional<std::int64_t> integer(const std::string& key);
  std::optional<double> number(const std::string& key);
  std::optional<std::string> word(const std::string& key);
  /// Throws InputError if the key has any other value than the only supported one.
  void expect(const std::string& key, std::int64_t value);
  void expect(const std::string& key, double value);
  /// Accepts a key that does not affect results.
  void pass_over(const std::string& key) { asked_.insert(prefix_ + key); }
  /// Throws InputError for keys of the architecture that were not read.
  void close() const;

 private:
  [[noreturn]] void refuse(const std::string& key, const std::string& value, const std::string& expected) const;
  const GgufFile& file_;
  std::string prefix_;
  std::set<std::string> asked_;
};

}  // namespace zero
