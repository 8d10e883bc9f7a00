#include "zero/config/source_files.h"

#include <algorithm>
#include <filesystem>

#include "base/files/lookup.h"
#include "base/fingerprint.h"
#include "base/utf8.h"
#include "models/text/chat_template.h"
#include "zero/config/setup.h"

namespace zero {
namespace {

namespace fs = std::filesystem;

class Search {
 public:
  void add(const std::string& name, const fs::path& path) {
    if (!is_utf8(name) || !is_there(path)) return;
    const bool known = std::any_of(files_.begin(), files_.end(),
                                   [&](const SourceFile& file) { return is_same_place(file.path, path); });
    if (!known) files_.push_back({name, path.string()});
  }

  void add_tokenizer(const std::string& role, const std::string& folder) {
    if (folder.empty()) return;
    for (const std::string& name : tokenizer_file_names()) add(role + "/" + name, fs::path(folder) / name);
    add(role + "/spiece.model", fs::path(folder) / "spiece.model");
    const fs::path templates = fs::path(folder) / "additional_chat_templates";
    for (const std::string& file : names_in(templates))
      if (fs::path(file).extension() == ".jinja") add(role + "/additional_chat_templates/" + file, templates / file);
  }

  std::vector<SourceFile> take() {
    std::sort(files_.begin(), files_.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
    return std::move(files_);
  }

 private:
  std::vector<SourceFile> files_;
};

}  // namespace

std::vector<SourceFile> source_files(const std::string& base, const TokenizerSource& tokenizer,
                                     const std::string& adapter) {
  Search search;
  if (!base.empty())
    for (const char* name : {"config.json", "generation_config.json"})
      search.add(std::string("base/") + name, fs::path(base) / name);
  if (!adapter.empty()) search.add("adapter/adapter_config.json", fs::path(adapter) / "adapter_config.json");
  search.add_tokenizer("tokenizer", tokenizer_home(tokenizer.tokenizer));
  if (!tokenizer.tokenizer.empty() && !is_folder(tokenizer.tokenizer))
    search.add("tokenizer", tokenizer.tokenizer);  // under any name
  search.add_tokenizer("settings", tokenizer.settings);
  if (!tokenizer.chat_template.empty() && !ChatTemplate::is_known(tokenizer.chat_template))
    search.add("chat_template", tokenizer.chat_template);
  return search.take();
}

std::vector<SourceFile> source_files_of(const Config& config) {
  const HfWriteOptions options = write_options_of(config);
  return source_files(options.base, options.tokenizer, config.lora ? config.lora->adapter : "");
}

std::vector<std::pair<std::string, std::string>> source_marks(const std::vector<SourceFile>& files) {
  std::vector<std::pair<std::string, std::string>> marks;
  for (const SourceFile& file : files) marks.emplace_back(file.name, hex(fingerprint_of_file(file.path)));
  return marks;
}

}  // namespace zero
