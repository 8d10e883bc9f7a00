#pragma once
// GgufFile: a GGUF file of version 2 or 3, little-endian (ggml, docs/gguf.md): its metadata, its tensors, and their
// bytes on request. It enforces all rules of the format, and limits the cost of a hostile header. Does not include
// LibTorch.
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

/// A metadata value. Integers have 64 bits; floats and lists of numbers are doubles. A float becomes the double that
/// its shortest decimal form denotes, so 1e-5 stays 1e-5.
using GgufValue = std::variant<bool, std::int64_t, double, std::string, std::vector<double>, std::vector<std::string>>;

struct GgufEntry {
  std::string name;
  std::vector<std::int64_t> shape;  // rows first, as everywhere in this project; the file reverses the order
  GgmlType type = GgmlType::f32;
  std::int64_t begin = 0;  // of its bytes in the file

  std::int64_t numel() const;
};

class GgufFile {
 public:
  /// Reads everything before the data. Throws InputError with the file, the violated rule, and the offset or the
  /// tensor. If a tensor has an unsupported type (ggml_type.h), the message adds the remedy.
  explicit GgufFile(const std::string& path);

  /// True if the file begins like a GGUF file. False if `path` is not a file.
  static bool is_one(const std::string& path);

  const std::string& path() const { return file_.path(); }
  const std::map<std::string, GgufValue>& metadata() const { return metadata_; }
  /// Returns nothing if the key is absent. Throws InputError if the value has another type.
  std::optional<std::int64_t> integer(const std::string& key) const;
  std::optional<double> number(const std::string& key) const;
  std::optional<bool> flag(const std::string& key) const;
  std::optional<std::string> word(const std::string& key) const;
  /// Returns null if the key is absent.
  const std::vector<double>* numbers(const std::string& key) const;
  const std::vector<std::string>* words(const std::string& key) const;

  const std::vector<GgufEntry>& tensors() const { return tensors_; }
  /// Returns null if no tensor has this name.
  const GgufEntry* find(const std::string& name) const;
  /// Reads elements [begin, begin + count) of a tensor as stored, ggml_bytes(...) bytes. The range must be whole
  /// blocks.
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
