#include "tests/fuzz/file_changes.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "tests/fuzz/fuzz_words.h"
#include "tests/fuzz/mutations.h"

namespace zero {
namespace {

using Json = nlohmann::ordered_json;
using Part = FuzzTarget::Part;

Json parsed(std::string_view text) { return Json::parse(text, nullptr, false); }

std::string written(const Json& document, Mutations& mutations) {
  return document.dump(-1, ' ', mutations.below(2) == 0, Json::error_handler_t::replace);
}

std::string changed_json(const std::string& text, const Part& part, Mutations& mutations) {
  const Json document = parsed(text);
  if (document.is_discarded()) return mutations.of_bytes(text, {text}, json_words());
  std::vector<Json> words{1};
  for (const std::string& word : part.words) words.push_back(parsed(word));
  return written(mutations.of_json(document, {document}, words), mutations);
}

/// Lines of their own: one is changed, left out, doubled, or gets a word before it.
std::string changed_lines(const std::string& text, Mutations& mutations, const std::vector<std::string>& words,
                          const std::function<std::string(const std::string&)>& change) {
  std::vector<std::string> lines(1);
  for (const char c : text)
    if (c == '\n')
      lines.emplace_back();
    else
      lines.back() += c;
  for (std::size_t n = 1 + mutations.below(3); n > 0; --n) {
    const std::size_t at = mutations.below(lines.size());
    const auto line = lines.begin() + static_cast<std::ptrdiff_t>(at);
    const std::size_t kind = mutations.below(8);
    if (kind == 0 && lines.size() > 1)
      lines.erase(line);
    else if (kind == 1)
      lines.insert(line, std::string(mutations.one_of(lines)));
    else if (kind == 2 && !words.empty())
      lines.insert(line, mutations.one_of(words));
    else
      *line = change(*line);
  }
  std::string made;
  for (const std::string& line : lines) made += (&line == lines.data() ? "" : "\n") + line;
  return made;
}

std::string changed_toml(const std::string& text, const Part& part, Mutations& mutations) {
  static const std::vector<std::string> values{"true",
                                               "0",
                                               "-1",
                                               "1",
                                               "2",
                                               "3",
                                               "1e308",
                                               "inf",
                                               "nan",
                                               "9223372036854775807",
                                               "\"\"",
                                               "[]",
                                               "[\"a\"]",
                                               "0.5",
                                               "{}",
                                               "\"auto\"",
                                               "[0.9, 0.95]",
                                               "1979-05-27",
                                               "0xff",
                                               "\"\"\"a\nb\"\"\"",
                                               "\"nf4\"",
                                               "\"cpu\"",
                                               "\"nvme\"",
                                               "\"full\"",
                                               "\"all-linear\"",
                                               "\"a.txt\"",
                                               "[\"a.txt\", \"b.jsonl\"]",
                                               "4096"};
  return changed_lines(text, mutations, part.words, [&](const std::string& line) {
    const std::size_t equals = line.find('=');
    if (equals == line.npos || mutations.below(4) == 0) return mutations.of_bytes(line, {text}, values);
    return line.substr(0, equals + 1) + " " + mutations.one_of(values);
  });
}

/// Behind 8 bytes of its length a header in JSON, then data. Half of the headers get offsets that their shapes ask for.
std::string changed_safetensors(const std::string& content, const Part& part, Mutations& mutations) {
  std::uint64_t length = 0;
  if (content.size() < sizeof length) return content + std::string(8, '\0');
  std::memcpy(&length, content.data(), sizeof length);
  if (length > content.size() - sizeof length) return mutations.of_bytes(content, {content}, json_words());
  std::string header = changed_json(content.substr(8, length), part, mutations), data = content.substr(8 + length);
  Json document = parsed(header);
  if (document.is_object() && mutations.below(2) == 0) {
    std::uint64_t end = 0;
    for (auto& [name, tensor] : document.items()) {
      if (!tensor.is_object() || !tensor.contains("shape") || !tensor["shape"].is_array()) continue;
      const Json type = tensor.value("dtype", Json());
      std::uint64_t bytes = type == "F32" || type == "I32"   ? 4
                            : type == "F64" || type == "I64" ? 8
                            : type == "U8"                   ? 1
                                                             : 2;
      for (const Json& size : tensor["shape"]) bytes *= size.is_number_unsigned() ? size.get<std::uint64_t>() % 100 : 1;
      tensor["data_offsets"] = {end, end + bytes};
      end += bytes;
    }
    if (end < (1U << 16)) data.resize(end);
    header = written(document, mutations);
  }
  length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + header + data;
}

std::uint64_t take_varint(const std::string& bytes, std::size_t& at) {
  std::uint64_t value = 0;
  for (int shift = 0; at < bytes.size(); shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes[at++]);
    if (shift < 64) value |= std::uint64_t{byte & 0x7FU} << shift;
    if (byte < 0x80) break;
  }
  return value;
}

void add_varint(std::string& bytes, std::uint64_t value) {
  for (; value > 0x7F; value >>= 7) bytes += static_cast<char>(value | 0x80);
  bytes += static_cast<char>(value);
}

/// The fields of a message, each with its tag: of one the content is changed as a message again, or as bytes.
std::string changed_protobuf(const std::string& message, Mutations& mutations, int depth = 0) {
  struct Field {
    std::uint64_t tag;
    std::string content;  // of a message or text; else the field's bytes as they are
  };
  std::vector<Field> fields;
  for (std::size_t at = 0; at < message.size();) {
    Field field{take_varint(message, at), ""};
    const std::size_t begin = at;
    std::size_t length = 0;
    switch (field.tag & 7) {
      case 0:
        take_varint(message, at), length = at - begin, at = begin;
        break;
      case 1:
        length = 8;
        break;
      case 2:
        length = take_varint(message, at);
        break;
      case 5:
        length = 4;
        break;
      default:
        return mutations.of_bytes(message, {message}, json_words());
    }
    if (length > message.size() - at) return mutations.of_bytes(message, {message}, json_words());
    field.content = message.substr(at, length);
    at += length;
    fields.push_back(std::move(field));
  }
  if (fields.empty()) return mutations.of_bytes(message, {message}, json_words());
  // pieces of a vocabulary are many: the fields behind them are few and say more
  const std::size_t which = mutations.below(2) == 0
                                ? fields.size() - 1 - mutations.below(std::min<std::size_t>(fields.size(), 4))
                                : mutations.below(fields.size());
  const auto place = fields.begin() + static_cast<std::ptrdiff_t>(which);
  switch (mutations.below(depth == 0 ? 8 : 5)) {
    case 0:
      fields.erase(place);
      break;
    case 1:
      fields.insert(place, Field(mutations.one_of(fields)));
      break;
    case 2:
      place->tag ^= mutations.below(8) << 3;
      break;
    default:
      if ((place->tag & 7) != 2 || depth > 2)
        place->content =
            mutations.of_bytes(place->content, {place->content}, {std::string(4, '\0'), "\xff\xff\xff\x7f"});
      else
        place->content = changed_protobuf(place->content, mutations, depth + 1);
  }
  std::string made;
  for (const Field& field : fields) {
    add_varint(made, field.tag);
    if ((field.tag & 7) == 2) add_varint(made, field.content.size());
    made += field.content;
  }
  return made;
}

std::string changed_file(const Part& part, const std::string& content, Mutations& mutations) {
  switch (part.form) {
    case FileForm::json:
      return changed_json(content, part, mutations);
    case FileForm::json_lines:
      return changed_lines(content, mutations, part.words,
                           [&](const std::string& line) { return changed_json(line, part, mutations); });
    case FileForm::jinja:
      return mutations.of_template(content, {content}, template_words());
    case FileForm::toml:
      return changed_toml(content, part, mutations);
    case FileForm::safetensors:
      return changed_safetensors(content, part, mutations);
    case FileForm::protobuf:
      return changed_protobuf(content, mutations);
    case FileForm::gguf:  // JSON that says what the file holds, or the file
      return content.starts_with('{') ? changed_json(content, part, mutations)
                                      : mutations.of_bytes(content, {content}, {std::string(8, '\0')});
    case FileForm::bytes:
      break;
  }
  return mutations.of_bytes(content, {content}, json_words());
}

}  // namespace

std::string changed_input(const FuzzTarget& target, const std::string& input, std::uint64_t seed,
                          const std::function<std::string(const std::string&)>& bytes) {
  Mutations mutations(seed);
  FuzzFiles files = target.files_of(input);
  const Part& part = mutations.one_of(target.parts());
  if (mutations.below(30) == 0 && target.parts().size() > 1) {
    files.erase(part.name);
    return target.input_of(files);
  }
  std::string& content = files[part.name];
  content = mutations.below(3) == 0 ? bytes(content) : changed_file(part, content, mutations);
  return target.input_of(files);
}

}  // namespace zero
