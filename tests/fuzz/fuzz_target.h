#pragma once
// FuzzTarget: what reads one kind of users' files, called with whatever a fuzzer makes of them. Each target is a file of this
// folder that holds one; libfuzzer.cpp drives the one that it is linked with, replay_test.cpp all of them.
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace zero {

/// How a file is built, and so how it is changed: bytes alone would end at the first bracket.
enum class FileForm : std::uint8_t { bytes, json, json_lines, jinja, toml, safetensors, protobuf, gguf };

/// Contents by name.
using FuzzFiles = std::map<std::string, std::string>;

class FuzzTarget {
 public:
  struct Part {
    std::string name;
    FileForm form = FileForm::bytes;
    std::vector<std::string> words = {};  // that are put into it; JSON values where the file is JSON
  };

  /// Must last as long as the program. `use` reads the files, and uses what was accepted.
  FuzzTarget(std::string name, std::vector<Part> parts, void (*use)(const FuzzFiles&));

  const std::string& name() const { return name_; }
  const std::vector<Part>& parts() const { return parts_; }

  /// An Error is an answer: its message; empty where the input was taken. Anything else that is thrown goes on, as a finding.
  std::string run(std::string_view input) const;

  /// An input is the file itself where there is one part. Where there are several each stands behind a line "=== NAME";
  /// those of other names are passed over, and what stands before the first one.
  FuzzFiles files_of(std::string_view input) const;
  std::string input_of(const FuzzFiles& files) const;

  /// Of the program, by name.
  static std::vector<const FuzzTarget*> all();

 private:
  std::string name_;
  std::vector<Part> parts_;
  void (*use_)(const FuzzFiles&);
};

}  // namespace zero
