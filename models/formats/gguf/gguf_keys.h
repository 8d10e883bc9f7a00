#pragma once
// GgufKeys: the keys of a file's architecture while they are read: which were asked for, so that none is passed over that
// would change the model. No LibTorch.
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
  /// The values of keys, without the prefix; none where they are absent.
  std::optional<std::int64_t> integer(const std::string& key);
  std::optional<double> number(const std::string& key);
  std::optional<std::string> word(const std::string& key);
  /// InputError for a value of a key that only says what is done here anyway, when it says something else.
  void expect(const std::string& key, std::int64_t value);
  void expect(const std::string& key, double value);
  /// A key without a part in results.
  void pass_over(const std::string& key) { asked_.insert(prefix_ + key); }
  /// InputError for keys of the architecture that nobody asked for.
  void close() const;

 private:
  [[noreturn]] void refuse(const std::string& key, const std::string& value, const std::string& expected) const;
  const GgufFile& file_;
  std::string prefix_;
  std::set<std::string> asked_;
};

}  // namespace zero
