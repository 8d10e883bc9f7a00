#include "zero/checkpoint/manifest.h"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/durable_file.h"
#include "base/files/file.h"
#include "base/hash.h"
#include "base/json_text.h"
#include "base/log.h"
#include "base/utf8.h"
#include "zero/checkpoint/damaged_checkpoint.h"

namespace zero {
namespace {

using nlohmann::ordered_json;

// The text starts with {"checksum":"0123456789abcdef", which is computed with zeros in place of the digits.
const std::string opening = "{\"checksum\":\"";
constexpr std::size_t digits = 16;
// Upper bounds that keep sums below 64 bits: steps or tokens, elements of a group, bytes.
constexpr std::int64_t most_counted = std::int64_t{1} << 60, most_elements = std::int64_t{1} << 52,
                       most_bytes = std::int64_t{1} << 60;

std::string hex(std::uint64_t number) {
  char word[digits + 1];
  std::snprintf(word, sizeof word, "%016llx", static_cast<unsigned long long>(number));
  return word;
}

std::string summed_text(std::string content) {
  content.replace(opening.size(), digits, digits, '0');
  content += "\n" + std::to_string(content.size());  // the checksum must cover padding at the end
  return content;
}

std::uint64_t checksum_of_text(std::string content) { return checksum_of(summed_text(std::move(content))); }

std::uint64_t checksum_of_version_1(std::string content) {
  std::string text = summed_text(std::move(content));
  text.resize((text.size() + 31) / 32 * 32);
  return linear_checksum(reinterpret_cast<const std::byte*>(text.data()), text.size());
}

ordered_json json_of(const RunPosition& position) {
  ordered_json json = {{"steps", position.steps},
                       {"tokens", position.tokens},
                       {"trained_tokens", position.trained_tokens},
                       {"seconds", position.seconds},
                       {"updates", position.updates}};
  if (!position.unwritten_records.empty()) json["unwritten_records"] = position.unwritten_records;
  if (!position.owed_validation.empty()) json["owed_validation"] = position.owed_validation;
  if (const auto& scale = position.loss_scale)
    json["loss_scale"] = {
        {"scale", scale->scale}, {"clean_steps", scale->clean_steps}, {"skipped_steps", scale->skipped_steps}};
  if (const PassedSteps& passed = position.passed; passed != PassedSteps())
    json["passed"] = {{"steps", passed.steps},
                      {"in_a_row", passed.in_a_row},
                      {"rollbacks", passed.rollbacks},
                      {"failed_at", passed.failed_at}};
  return json;
}

// nlohmann-json silently converts fractions and out-of-range numbers.
template <class T = std::int64_t>
T whole(const ordered_json& json) {
  const bool is_small = json.is_number_unsigned()
                            ? json.get<std::uint64_t>() <= std::uint64_t(std::numeric_limits<T>::max())
                            : json.is_number_integer() && json.get<std::int64_t>() >= std::numeric_limits<T>::min();
  if (!is_small) throw std::runtime_error("a whole number is missing or out of its range");
  return json.get<T>();
}

// Reads a number of steps or tokens, within a bound that keeps sums exact.
std::int64_t count_of(const ordered_json& json) {
  const std::int64_t count = whole(json);
  if (count < 0 || count > most_counted) throw std::runtime_error("a count out of its range");
  return count;
}

RunPosition position_of(const ordered_json& json) {
  RunPosition position;
  position.steps = count_of(json.at("steps"));
  position.tokens = count_of(json.at("tokens"));
  position.trained_tokens = count_of(json.at("trained_tokens"));
  position.seconds = json.at("seconds");
  position.updates = count_of(json.at("updates"));
  if (const auto found = json.find("loss_scale"); found != json.end())
    position.loss_scale = {found->at("scale"), count_of(found->at("clean_steps")),
                           count_of(found->at("skipped_steps"))};
  if (const auto found = json.find("passed"); found != json.end()) {
    for (const ordered_json& step : found->at("steps")) position.passed.steps.push_back(count_of(step));
    position.passed.in_a_row = count_of(found->at("in_a_row"));
    position.passed.rollbacks = count_of(found->at("rollbacks"));
    position.passed.failed_at = count_of(found->at("failed_at"));
  }
  if (const auto found = json.find("unwritten_records"); found != json.end()) position.unwritten_records = *found;
  if (const auto found = json.find("owed_validation"); found != json.end()) position.owed_validation = *found;
  return position;
}

// JSON is UTF-8, but a path may hold any bytes, so %XX encodes non-ASCII bytes and % itself.
std::string escaped(const std::string& bytes) {
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    char word[4];
    std::snprintf(word, sizeof word, "%%%02X", byte);
    text += byte >= 0x80 || c == '%' ? word : std::string(1, c);
  }
  return text;
}

std::string unescaped(const std::string& text) {
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%')
      bytes += text[i];
    else
      bytes += static_cast<char>(std::stoi(text.substr(std::exchange(i, i + 2) + 1, 2), nullptr, 16));
  }
  return bytes;
}

ordered_json json_of(const RunDescription& run) {
  ordered_json settings = ordered_json::object();
  for (const auto& [key, value] : run.settings) settings[key] = value;
  const bool plain = is_utf8(run.directory);
  ordered_json json = {{"ranks", run.ranks},
                       {"stage", run.stage},
                       {"settings", settings},
                       {plain ? "directory" : "escaped_directory", plain ? run.directory : escaped(run.directory)},
                       {"configuration", run.configuration},
                       {"model_config", run.model_config}};
  if (run.threads > 0) json["threads"] = run.threads;
  if (!run.processor.empty()) json["processor"] = run.processor;
  for (const auto& [name, mark] : run.sources) json["sources"][name] = mark;
  if (!run.id.empty()) json["id"] = run.id;
  return json;
}

RunDescription run_of(const ordered_json& json) {
  RunDescription run;
  run.ranks = whole<int>(json.at("ranks"));
  run.stage = whole<int>(json.at("stage"));
  for (const auto& [key, value] : json.at("settings").items()) run.settings.emplace_back(key, value.get<std::string>());
  run.directory = json.contains("escaped_directory") ? unescaped(json.at("escaped_directory"))
                                                     : json.at("directory").get<std::string>();
  run.configuration = json.at("configuration");
  run.model_config = json.at("model_config");
  if (const auto found = json.find("threads"); found != json.end()) run.threads = whole<int>(*found);
  if (const auto found = json.find("processor"); found != json.end()) run.processor = *found;
  if (const auto found = json.find("id"); found != json.end()) run.id = *found;
  if (const auto found = json.find("sources"); found != json.end())
    for (const auto& [name, mark] : found->items()) run.sources.emplace_back(name, mark.get<std::string>());
  return run;
}

const std::pair<const char*, at::ScalarType> state_types[] = {
    {"float32", at::kFloat}, {"float64", at::kDouble}, {"bfloat16", at::kBFloat16}, {"uint8", at::kByte},
    {"float16", at::kHalf},  {"int64", at::kLong},     {"int32", at::kInt},         {"int16", at::kShort},
    {"int8", at::kChar},     {"bool", at::kBool}};

std::string name_of(at::ScalarType type) {
  for (const auto& [name, known] : state_types)
    if (known == type) return name;
  throw InternalError("states of a type that checkpoints do not hold");
}

at::ScalarType state_type_of(const std::string& name) {
  for (const auto& [known, type] : state_types)
    if (known == name) return type;
  throw std::runtime_error("states of type " + name);
}

ordered_json json_of(const TensorCut& cut) {
  return {{"dim", cut.dim}, {"pieces", cut.pieces}, {"ranks", cut.place.ranks}, {"rank", cut.place.rank}};
}

/// Reads the cut of a tensor with `dimensions` dimensions. Products of its numbers fit into 64 bits.
TensorCut cut_of(const ordered_json& json, std::size_t dimensions) {
  constexpr int most_ranks = 1 << 10;
  TensorCut cut{whole<int>(json.at("dim")), {}, {whole<int>(json.at("ranks")), whole<int>(json.at("rank"))}};
  for (const auto& size : json.at("pieces")) cut.pieces.push_back(whole(size));
  const bool sound = cut.dim >= 0 && std::size_t(cut.dim) < dimensions && cut.place.ranks >= 1 &&
                     cut.place.ranks <= most_ranks && cut.place.rank >= 0 && cut.place.rank < cut.place.ranks &&
                     !cut.pieces.empty() && cut.pieces.size() <= 64 &&
                     std::ranges::all_of(cut.pieces, [](std::int64_t n) { return n >= 0 && n <= most_elements / 64; });
  if (!sound) throw std::runtime_error("a slice out of its tensor");
  return cut;
}

ordered_json json_of(const SavedGroup& group) {
  ordered_json tensors = ordered_json::array(), states = ordered_json::array();
  for (const FlatTensor& tensor : group.tensors) {
    tensors.push_back({{"name", tensor.spec.name}, {"shape", tensor.spec.shape}, {"offset", tensor.offset}});
    if (tensor.spec.cut) tensors.back()["cut"] = json_of(*tensor.spec.cut);
  }
  for (const StateSpec& state : group.states)
    states.push_back({{"name", state.name}, {"type", name_of(state.type)}, {"grain", state.grain}});
  ordered_json json = {{"numel", group.numel}, {"states", states}, {"tensors", tensors}};
  if (!group.optimizer.empty()) json["optimizer"] = group.optimizer;
  return json;
}

SavedGroup group_of(const ordered_json& json) {
  SavedGroup group;
  group.numel = whole(json.at("numel"));
  group.optimizer = json.value("optimizer", "");
  for (const auto& tensor : json.at("tensors")) {
    std::vector<std::int64_t> shape;
    for (const auto& size : tensor.at("shape")) shape.push_back(whole(size));
    TensorSpec spec{tensor.at("name"), std::move(shape)};
    if (const auto cut = tensor.find("cut"); cut != tensor.end()) spec.cut = cut_of(*cut, spec.shape.size());
    group.tensors.push_back({std::move(spec), whole(tensor.at("offset")), 0});
  }
  if (const auto states = json.find("states"); states != json.end())
    for (const auto& state : *states)
      group.states.push_back({state.at("name"), state_type_of(state.at("type")), whole(state.at("grain"))});
  return group;
}

ordered_json json_of(const SavedModel& model) {
  return {{"name", model.name}, {"type", model.type}, {"updates", model.updates}};
}

SavedModel model_of(const ordered_json& json) {
  return {json.at("name"), json.at("type"), count_of(json.at("updates"))};
}

ordered_json json_of(const SavedFile& file) {
  ordered_json sections = ordered_json::array();
  for (const ShardSection& section : file.sections) sections.push_back({section.group, section.begin, section.count});
  return {
      {"name", file.name}, {"bytes", file.mark.bytes}, {"checksum", hex(file.mark.checksum)}, {"sections", sections}};
}

SavedFile file_of(const ordered_json& json) {
  SavedFile file{
      json.at("name"), {}, {whole(json.at("bytes")), std::stoull(json.at("checksum").get<std::string>(), nullptr, 16)}};
  for (const auto& section : json.at("sections"))
    file.sections.push_back({whole<int>(section.at(0)), whole(section.at(1)), whole(section.at(2))});
  return file;
}

std::vector<StateSpec> states_of_version_1(std::int64_t element_bytes) {
  if (element_bytes != 4 && element_bytes != 8) throw std::runtime_error("numbers out of their range");
  const at::ScalarType type = element_bytes == 8 ? at::kDouble : at::kFloat;
  return {{"master", type}, {"exp_avg", type}, {"exp_avg_sq", type}};
}

// Invariants that readers rely on, in case another program made the file.
void check(const Manifest& manifest, const std::string& path) {
  const auto require = [&](bool holds, const char* what) {
    if (!holds) throw DamagedCheckpoint(text(path, ": ", what));
  };
  require(manifest.chunk_elements > 0 && manifest.chunk_elements <= (1 << 26), "numbers out of their range");
  require(std::is_sorted(manifest.position.passed.steps.begin(), manifest.position.passed.steps.end()),
          "steps out of their order");
  for (const SavedGroup& group : manifest.groups) {
    require(group.numel >= 0 && group.numel <= most_elements, "numbers out of their range");
    require(!group.states.empty() && group.states.size() <= 64, "a group without states");
    for (const StateSpec& state : group.states)
      require(state.grain > 0 && state.grain <= manifest.chunk_elements && manifest.chunk_elements % state.grain == 0,
              "a block of states that chunks would cut");
    for (const FlatTensor& tensor : group.tensors) {
      std::int64_t count = 1;
      for (const std::int64_t size : tensor.spec.shape)
        require(size >= 0 && !__builtin_mul_overflow(count, size, &count), "a tensor of a negative size");
      require(tensor.offset >= 0 && tensor.offset <= group.numel && count <= group.numel - tensor.offset,
              "a tensor outside of its group");
      const auto& cut = tensor.spec.cut;
      require(!cut || tensor.spec.shape[std::size_t(cut->dim)] == cut->held(cut->place.rank),
              "a slice of another size than its cut");
      count = 1;
      for (const std::int64_t size : tensor.spec.full().shape)
        require(!__builtin_mul_overflow(count, size, &count) && count <= most_elements,
                "a slice of too large a tensor");
    }
  }
  std::int64_t all_bytes = 0;
  for (const SavedFile& file : manifest.files) {
    require(file.mark.bytes >= 0 && file.mark.bytes <= most_bytes - all_bytes, "numbers out of their range");
    all_bytes += file.mark.bytes;
    require(!file.name.empty() && file.name.find('/') == std::string::npos && file.name != "." && file.name != "..",
            "a file outside of the folder");
    for (const ShardSection& section : file.sections)
      require(section.group >= 0 && section.group < int(manifest.groups.size()) && section.begin >= 0 &&
                  section.count >= 0 && section.begin <= manifest.groups[section.group].numel &&
                  section.count <= manifest.groups[section.group].numel - section.begin &&
                  (section.count == 0 || section.begin % largest_grain(manifest.groups[section.group].states) == 0),
              "a section outside of its group");
    double bytes = 0;  // approximate, since each file's size is checked when it is opened
    for (const ShardSection& section : file.sections) {
      const std::int64_t chunks = section.count / manifest.chunk_elements + 1;
      bytes += double(chunks) *
               double(state_bytes(manifest.groups[section.group].states, manifest.chunk_elements) + DurableFile::block);
    }
    require(bytes < double(most_bytes), "more states than a file can hold");
  }
}

}  // namespace

std::vector<std::vector<StateSpec>> Manifest::states() const {
  std::vector<std::vector<StateSpec>> all;
  for (const SavedGroup& group : groups) all.push_back(group.states);
  return all;
}

std::int64_t Manifest::bytes() const {
  std::int64_t sum = 0;
  for (const SavedFile& file : files) sum += file.mark.bytes;
  return sum;
}

bool is_state_type(at::ScalarType type) {
  return std::ranges::any_of(state_types, [&](const auto& known) { return known.second == type; });
}

std::string format_manifest(const Manifest& manifest) {
  const bool slices = std::ranges::any_of(manifest.groups, [](const SavedGroup& group) {
    return std::ranges::any_of(group.tensors, [](const FlatTensor& tensor) { return tensor.spec.cut.has_value(); });
  });
  ordered_json json = {{"checksum", std::string(digits, '0')}, {"version", slices ? 3 : 2}};
  json["position"] = json_of(manifest.position);
  for (const SavedModel& model : manifest.models) json["models"].push_back(json_of(model));
  json["chunk_elements"] = manifest.chunk_elements;
  json["files"] = ordered_json::array();
  for (const SavedFile& file : manifest.files) json["files"].push_back(json_of(file));
  json["groups"] = ordered_json::array();
  for (const SavedGroup& group : manifest.groups) json["groups"].push_back(json_of(group));
  json["run"] = json_of(manifest.run);
  std::string content = json.dump() + "\n";
  if (std::int64_t(content.size()) > Manifest::most_bytes)
    throw Error(text("the manifest of the checkpoint takes ", content.size(), " bytes, and at most ",
                     Manifest::most_bytes, " are read: save on fewer ranks"));
  ZERO_CHECK(content.starts_with(opening), "a manifest begins with its checksum");
  return content.replace(opening.size(), digits, hex(checksum_of_text(content)));
}

std::int64_t mark_of(const Manifest& manifest) {
  return static_cast<std::int64_t>(checksum_of_text(format_manifest(manifest)));
}

Manifest parse_manifest(const std::string& content, const std::string& path) {
  const bool has_sum = content.size() >= opening.size() + digits && content.starts_with(opening);
  const std::string sum = has_sum ? content.substr(opening.size(), digits) : "";
  const bool is_first = has_sum && sum == hex(checksum_of_version_1(content));
  if (!has_sum || (!is_first && sum != hex(checksum_of_text(content))))
    throw DamagedCheckpoint(path + ": is not what was written: its checksum does not agree");
  try {
    const ordered_json json = parse_ordered_json(content, path, {.bytes = std::int64_t(content.size()), .depth = 16});
    const auto version = whole(json.at("version"));
    if (version > Manifest::current_version)  // an undamaged manifest
      throw InputError(text(path, ": is of version ", version, ", and this program reads versions up to ",
                            Manifest::current_version, ": read it with the program that wrote it"));
    if (version < 1 || is_first != (version == 1)) throw std::runtime_error("a checksum of another version");
    Manifest manifest;
    manifest.version = int(version);
    manifest.position = position_of(json.at("position"));
    if (const auto models = json.find("models"); models != json.end())
      for (const auto& model : *models) manifest.models.push_back(model_of(model));
    manifest.chunk_elements = whole(json.at("chunk_elements"));
    for (const auto& file : json.at("files")) manifest.files.push_back(file_of(file));
    for (const auto& group : json.at("groups")) {
      manifest.groups.push_back(group_of(group));
      if (version > 1) continue;
      manifest.groups.back().states = states_of_version_1(whole(json.at("element_bytes")));
      manifest.groups.back().optimizer = "adamw";
    }
    manifest.run = run_of(json.at("run"));
    check(manifest, path);
    return manifest;
  } catch (const Error&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    throw DamagedCheckpoint(path + ": is no manifest of a checkpoint: " + error.what());
  }
}

Manifest read_manifest(FileCalls& calls, const std::string& folder) {
  const std::string path = folder + "/manifest.json";
  const File file = File::open(path, calls);
  if (file.size() > Manifest::most_bytes)
    throw DamagedCheckpoint(
        text(path, ": has more than ", Manifest::most_bytes, " bytes, which no manifest of a checkpoint has"));
  std::string content(static_cast<std::size_t>(file.size()), '\0');
  content.resize(static_cast<std::size_t>(file.read_up_to(content.data(), file.size(), 0)));
  return parse_manifest(content, path);
}

}  // namespace zero
