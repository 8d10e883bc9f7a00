#pragma once
// GgufFile: a GGUF file of version 2 or 3, little-endian (ggml, docs/gguf.md): its metadata, its tensors, and their bytes
// as asked. All rules of the format are enforced, with caps on what a hostile head may cost. No LibTorch.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "base/files/file.h"
#include "base/numbers/ggml_type.h"

namespace zero {

class GgufCursor;

/// A value of the metadata: whole numbers as 64 bits, floats as doubles, lists of numbers as doubles. A float is the
/// nearest double of its shortest decimal, so that 1e-5 comes as it was meant.
using GgufValue = std::variant<bool, std::int64_t, double, std::string, std::vector<double>, std::vector<std::string>>;

struct GgufEntry {
  std::string name;
  std::vector<std::int64_t> shape;  // rows first, as elsewhere here; the file has the order reversed
  GgmlType type = GgmlType::f32;
  std::int64_t begin = 0;  // of its bytes in the file

  std::int64_t numel() const;
};

class GgufFile {
 public:
  /// Reads everything before the data. InputError names the file, the offset and the rule, or the tensor; of a type
  /// that is not read (ggml_type.h) with the remedy.
  explicit GgufFile(const std::string& path);

  /// Whether a file begins as a GGUF file does; false for what is no file.
  static bool is_one(const std::string& path);

  const std::string& path() const { return file_.path(); }
  const std::map<std::string, GgufValue>& metadata() const { return metadata_; }
  /// None where the key is absent; InputError where it is of another type.
  std::optional<std::int64_t> integer(const std::string& key) const;
  std::optional<double> number(const std::string& key) const;
  std::optional<bool> flag(const std::string& key) const;
  std::optional<std::string> word(const std::string& key) const;
  /// Null where the key is absent.
  const std::vector<double>* numbers(const std::string& key) const;
  const std::vector<std::string>* words(const std::string& key) const;

  const std::vector<GgufEntry>& tensors() const { return tensors_; }
  /// Null when there is none of this name.
  const GgufEntry* find(const std::string& name) const;
  /// Elements [begin, begin + count) of a tensor, whole blocks, as they are: [ggml_bytes].
  void read(const GgufEntry& tensor, std::int64_t begin, std::int64_t count, void* to) const;

 private:
  template <class T>
  const T* get(const std::string& key, const char* kind) const;
  void read_tensors(GgufCursor& cursor, std::int64_t count);
  void place_tensors(std::int64_t data);

  File file_;
  std::map<std::string, GgufValue> metadata_;
  std::vector<GgufEntry> tensors_;  // by offset
  std::unordered_map<std::string, std::size_t> index_;
};

}  // namespace zero
