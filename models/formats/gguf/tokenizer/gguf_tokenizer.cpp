#include "models/formats/gguf/tokenizer/gguf_tokenizer.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "base/files/lookup.h"
#include "base/fingerprint.h"
#include "base/json_text.h"
#include "base/log.h"
#include "base/utf8.h"
#include "models/formats/gguf/tokenizer/gguf_byte_pairs.h"
#include "models/formats/gguf/tokenizer/gguf_tokens.h"

namespace zero {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int unknown_type = 2;       // GGUF uses SentencePiece's numbers for types
constexpr double pad_score = -10000;  // for rows without a token (gguf_vocabulary)

/// The fields of a protobuf message.
class Message {
 public:
  void add(int field, std::string_view content) {
    varint(std::uint64_t(field) << 3 | 2);
    varint(content.size());
    bytes_ += content;
  }
  void add(int field, std::uint64_t value) {
    varint(std::uint64_t(field) << 3);
    varint(value);
  }
  void add_float(int field, float value) {
    varint(std::uint64_t(field) << 3 | 5);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  const std::string& bytes() const { return bytes_; }

 private:
  void varint(std::uint64_t value) {
    for (; value > 0x7F; value >>= 7) bytes_ += static_cast<char>((value & 0x7F) | 0x80);
    bytes_ += static_cast<char>(value);
  }
  std::string bytes_;
};

struct Vocabulary {
  const std::vector<std::string>& tokens;
  const std::vector<double>&scores, &types;
};

Vocabulary vocabulary_of(const GgufFile& file) {
  const GgufTokens tokens = gguf_tokens(file);
  const auto* scores = file.numbers("tokenizer.ggml.scores");
  if (!scores || scores->size() != tokens.texts.size())
    throw InputError(text(file.path(), ": tokenizer.ggml.tokens and .scores must be lists of one length"));
  return {tokens.texts, *scores, tokens.types};
}

/// A ModelProto with byte-pair merges by score and an identity normaliser.
std::string model_of(const GgufFile& file) {
  const Vocabulary vocabulary = vocabulary_of(file);
  Message model;
  std::size_t count = vocabulary.tokens.size();
  while (count > 0 && vocabulary.scores[count - 1] == pad_score && vocabulary.types[count - 1] == 5) --count;
  for (std::size_t i = 0; i < count; ++i) {
    Message piece;
    piece.add(1, vocabulary.tokens[i]);
    piece.add_float(2, static_cast<float>(vocabulary.scores[i]));
    piece.add(3, static_cast<std::uint64_t>(vocabulary.types[i]));
    model.add(1, piece.bytes());
  }
  const auto unknown = std::find(vocabulary.types.begin(), vocabulary.types.end(), unknown_type);
  if (unknown == vocabulary.types.end()) throw InputError(text(file.path(), ": the tokenizer has no unknown token"));
  const auto id_of = [&](const char* name) {
    const auto id = file.integer(text("tokenizer.ggml.", name, "_token_id"));
    return id && *id >= 0 && std::size_t(*id) < count ? std::uint64_t(*id) : ~std::uint64_t{0};  // -1: none
  };
  Message trainer, normalizer;
  trainer.add(3, 2);  // model_type: BPE
  trainer.add(4, count);
  trainer.add(35, std::uint64_t(std::count(vocabulary.types.begin(), vocabulary.types.end(), 6) == 256));
  trainer.add(40, std::uint64_t(unknown - vocabulary.types.begin()));
  trainer.add(41, id_of("bos"));
  trainer.add(42, id_of("eos"));
  trainer.add(43, id_of("padding"));
  for (const auto& [field, name] : {std::pair{46, "bos"}, {47, "eos"}, {48, "padding"}})
    if (const std::uint64_t id = id_of(name); id < count) trainer.add(field, vocabulary.tokens[id]);
  trainer.add(45, vocabulary.tokens[std::size_t(unknown - vocabulary.types.begin())]);
  normalizer.add(1, std::string_view("identity"));
  normalizer.add(3, std::uint64_t(file.flag("tokenizer.ggml.add_space_prefix").value_or(true)));
  normalizer.add(4, std::uint64_t(file.flag("tokenizer.ggml.remove_extra_whitespaces").value_or(false)));
  normalizer.add(5, 1);
  model.add(2, trainer.bytes());
  model.add(3, normalizer.bytes());
  return model.bytes();
}

/// The contents of tokenizer_config.json: these settings, the named tokens, the chat template.
std::string settings_of(const GgufFile& file, json settings) {
  settings["clean_up_tokenization_spaces"] = false;
  const auto* tokens = file.words("tokenizer.ggml.tokens");
  for (const auto& [key, name] :
       {std::pair{"bos_token", "bos"}, {"eos_token", "eos"}, {"unk_token", "unknown"}, {"pad_token", "padding"}})
    if (const auto id = file.integer(text("tokenizer.ggml.", name, "_token_id"));
        id && *id >= 0 && tokens && std::size_t(*id) < tokens->size())
      settings[key] = (*tokens)[std::size_t(*id)];
  if (const auto jinja = file.word("tokenizer.chat_template")) settings["chat_template"] = *jinja;
  return settings.dump(2) + "\n";
}

json sentencepiece_settings(const GgufFile& file) {
  return {{"tokenizer_class", "LlamaTokenizer"},
          {"legacy", false},
          {"add_bos_token", file.flag("tokenizer.ggml.add_bos_token").value_or(true)},
          {"add_eos_token", file.flag("tokenizer.ggml.add_eos_token").value_or(false)}};
}

bool merges_bytes(const GgufFile& file) { return file.word("tokenizer.ggml.model") == "gpt2"; }

bool holds(const fs::path& file, const std::string& content) {
  const FileFacts facts = facts_of(file);
  return facts.kind == FileFacts::Kind::file && facts.bytes == std::int64_t(content.size()) &&
         read_text_file(file.string(), facts.bytes) == content;
}

/// Creates a folder that only this user can write to.
void make_own_folder(const std::string& folder) {
  struct stat status {};
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
    throw InputError(text(folder, ": cannot be made (", std::strerror(errno),
                          "), and the tokenizer of a GGUF file is "
                          "to lie there: set TMPDIR to another place"));
  if (::lstat(folder.c_str(), &status) != 0 || !S_ISDIR(status.st_mode) || status.st_uid != ::geteuid() ||
      (status.st_mode & 022) != 0)
    throw InputError(text(folder, ": must be a folder that you own and that others cannot write to: move it away"));
}

/// Requires UTF-8 in a tokenizer's files, as the format does for its texts.
void require_texts(const GgufFile& file) {
  for (const auto& [key, value] : file.metadata()) {
    if (!key.starts_with("tokenizer.")) continue;
    const std::string place = text(file.path(), ": ", key);
    if (const auto* word = std::get_if<std::string>(&value)) require_utf8(*word, place);
    if (const auto* words = std::get_if<std::vector<std::string>>(&value))
      for (const std::string& word : *words) require_utf8(word, place);
  }
}

}  // namespace

std::string why_no_tokenizer(const GgufFile& file) {
  const auto kind = file.word("tokenizer.ggml.model");
  if (!kind || *kind == "no_vocab" || *kind == "none") return "the file carries no tokenizer";
  if (merges_bytes(file)) return why_no_byte_pairs(file);
  if (*kind == "llama") return "";
  return "the file's tokenizer is of the kind \"" + *kind +
         "\", and SentencePiece's (\"llama\") and those that merge bytes (\"gpt2\") are read from GGUF files";
}

std::map<std::string, std::string> gguf_tokenizer_files(const GgufFile& file) {
  require_texts(file);
  if (merges_bytes(file))
    return {{"tokenizer.json", byte_pairs_json(file)},
            {"tokenizer_config.json", settings_of(file, {{"tokenizer_class", "PreTrainedTokenizerFast"}})}};
  return {{"tokenizer.model", model_of(file)},
          {"tokenizer_config.json", settings_of(file, sentencepiece_settings(file))}};
}

std::string gguf_tokenizer_folder(const GgufFile& file) {
  if (!why_no_tokenizer(file).empty()) return "";
  const std::map<std::string, std::string> files = gguf_tokenizer_files(file);
  std::string all;
  for (const auto& [name, content] : files) all += content;
  const std::string name = text("zero-tokenizer-", ::geteuid(), "-", hex(fingerprint_of(all), 16));
  const fs::path folder = fs::temp_directory_path() / name;
  make_own_folder(folder.string());
  for (const auto& [file_name, content] : files)
    if (!holds(folder / file_name, content)) write_text_file((folder / file_name).string(), content);
  return folder.string();
}

}  // namespace zero
