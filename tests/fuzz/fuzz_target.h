#pragma once
// FuzzTarget: the reader of one kind of users' files, called with a fuzzer's inputs. Each target is a file of this
// folder that holds one. libfuzzer.cpp drives the one that it is linked with, replay_test.cpp all of them.
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace zero {

/// The structure of a file, which decides how it is changed: random bytes would end at the first bracket.
enum class FileForm : std::uint8_t { bytes, json, json_lines, jinja, toml, safetensors, protobuf, gguf };

/// Contents by name.
using FuzzFiles = std::map<std::string, std::string>;

class FuzzTarget {
 public:
  struct Part {
    std::string name;
    FileForm form = FileForm::bytes;
    std::vector<std::string> words = {};  // words that changes insert; JSON values if the file is JSON
  };

  /// Static: it lasts as long as the program. `use` reads the files, and uses the contents that it accepts.
  FuzzTarget(std::string name, std::vector<Part> parts, void (*use)(const FuzzFiles&));

  const std::string& name() const { return name_; }
  const std::vector<Part>& parts() const { return parts_; }

  /// An Error is an answer: returns its message, or "" if the input was accepted. Any other exception propagates, as a
  /// finding.
  std::string run(std::string_view input) const;

  /// If there is one part, the input is the file itself. Otherwise each follows a line "=== NAME". Parts of other names
  /// and text before the first one are ignored.
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
