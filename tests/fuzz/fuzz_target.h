#pragma once
// FuzzTarget: calls the reader of one kind of user file with a fuzzer's inputs. Each target is a static object in a
// file of this folder. libfuzzer.cpp runs the target with which it is linked; replay_test.cpp runs all targets.
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace zero {

/// The structure of a file, which determines how it is changed. With random bytes, the parser would fail at the first
/// bracket.
enum class FileForm : std::uint8_t { bytes, json, json_lines, jinja, toml, safetensors, protobuf, gguf };

/// Contents by name.
using FuzzFiles = std::map<std::string, std::string>;

class FuzzTarget {
 public:
  struct Part {
    std::string name;
    FileForm form = FileForm::bytes;
    std::vector<std::string> words = {};  // words to insert; JSON values if the file is JSON
  };

  /// A target must be a static object. `use` reads the files, and uses the contents if they are accepted.
  FuzzTarget(std::string name, std::vector<Part> parts, void (*use)(const FuzzFiles&));

  const std::string& name() const { return name_; }
  const std::vector<Part>& parts() const { return parts_; }

  /// Returns the message if the reader throws Error, or "" if the input was accepted. Any other exception is a bug and
  /// propagates.
  std::string run(std::string_view input) const;

  /// If the target has one part, the input is the file itself. Otherwise each part follows a line "=== NAME". Parts
  /// with other names and text before the first part are ignored.
  FuzzFiles files_of(std::string_view input) const;
  std::string input_of(const FuzzFiles& files) const;

  /// All targets of the program, by name.
  static std::vector<const FuzzTarget*> all();

 private:
  std::string name_;
  std::vector<Part> parts_;
  void (*use_)(const FuzzFiles&);
};

}  // namespace zero
