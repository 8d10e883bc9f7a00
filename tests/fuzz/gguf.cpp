// A GGUF file: its metadata, configuration, tokenizer and tensors. An input that begins as JSON says what the file
// holds.
#include "models/formats/gguf/gguf_file.h"

#include <ATen/ATen.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "models/families/families.h"
#include "models/formats/gguf/gguf_config.h"
#include "models/formats/gguf/gguf_weights.h"
#include "models/formats/gguf/tokenizer/gguf_tokenizer.h"
#include "models/formats/gguf_metadata.h"
#include "models/text/tokenizer.h"
#include "models/weight_source.h"
#include "tests/fuzz/fuzz_folder.h"

namespace zero {
namespace gguf_target {

using Json = nlohmann::ordered_json;

void add(GgufMetadata& metadata, const std::string& key, const Json& value) {
  if (value.is_string()) metadata.add(key, value.get<std::string>());
  if (value.is_boolean()) metadata.add_bool(key, value);
  if (value.is_number_unsigned() && value.get<std::uint64_t>() <= std::numeric_limits<std::uint32_t>::max())
    metadata.add_uint32(key, value);
  if (value.is_number_float() && std::abs(value.get<double>()) < 1e38) metadata.add_float32(key, value);
  if (!value.is_array()) return;
  std::vector<std::string> words;
  std::vector<float> numbers;
  std::vector<std::int32_t> integers;
  for (const Json& item : value) {
    if (item.is_string()) words.push_back(item);
    if (item.is_number_float() && std::abs(item.get<double>()) < 1e38) numbers.push_back(item);
    if (item.is_number_integer()) integers.push_back(static_cast<std::int32_t>(item.get<std::int64_t>()));
  }
  if (!integers.empty())
    metadata.add(key, integers);
  else if (!numbers.empty())
    metadata.add(key, numbers);
  else
    metadata.add(key, words);
}

std::uint64_t whole(const Json& value, std::uint64_t otherwise) {
  return value.is_number_integer() ? static_cast<std::uint64_t>(value.get<std::int64_t>()) : otherwise;
}

/// {"version", "metadata": {KEY: VALUE}, "tensors": [{"name", "shape": as the file has it, "type", "offset"}], "bytes":
/// of data}
std::string file_of(const Json& said) {
  GgufMetadata metadata;
  const Json none = Json::object();
  for (const auto& [key, value] : (said.contains("metadata") ? said["metadata"] : none).items())
    add(metadata, key, value);
  const Json tensors = said.contains("tensors") && said["tensors"].is_array() ? said["tensors"] : Json::array();
  std::string file = "GGUF";
  append_number(file, static_cast<std::uint32_t>(whole(said.value("version", Json(3)), 3)));
  append_number<std::uint64_t>(file, tensors.size());
  append_number<std::uint64_t>(file, metadata.count());
  file += metadata.bytes();
  for (const Json& tensor : tensors) {
    if (!tensor.is_object()) continue;
    const Json name = tensor.value("name", Json("")), shape = tensor.value("shape", Json::array());
    append_text(file, name.is_string() ? name.get<std::string>() : "");
    append_number(file, static_cast<std::uint32_t>(shape.size()));
    for (const Json& size : shape) append_number(file, whole(size, 1));
    append_number(file, static_cast<std::uint32_t>(whole(tensor.value("type", Json(0)), 0)));
    append_number(file, whole(tensor.value("offset", Json(0)), 0));
  }
  file.resize((file.size() + 31) / 32 * 32);
  file.resize(file.size() + std::min<std::uint64_t>(whole(said.value("bytes", Json(0)), 0), 1 << 16), '\1');
  return file;
}

void use(const FuzzFiles& files) {
  const std::string& input = files.begin()->second;
  const Json said = input.starts_with('{') ? Json::parse(input, nullptr, false) : Json();
  if (said.is_discarded()) return;
  const std::string path = FuzzFolder::with({{"model.gguf", said.is_object() ? file_of(said) : input}}) / "model.gguf";
  const GgufFile file(path);
  for (const GgufEntry& tensor : file.tensors()) {
    std::string bytes(std::size_t(ggml_bytes(tensor.type, tensor.numel())), '\0');
    file.read(tensor, 0, tensor.numel(), bytes.data());
  }
  if (why_no_tokenizer(file).empty()) try {
      const std::string folder = FuzzFolder::with(gguf_tokenizer_files(file)).path();
      const Tokenizer tokenizer = Tokenizer::load(folder);
      tokenizer.decode(tokenizer.encode("a the\n \u00e9 <s> 12", {.bos = true, .eos = true}));
    } catch (const InputError&) {  // the model may do
    }
  FuzzFolder::with({{"model.gguf", said.is_object() ? file_of(said) : input}});
  const GgufModel model = open_gguf_model(path);
  const std::vector<TensorSpec> tensors = tensors_of(make_model(model.config));
  model.weights->check(tensors);
  for (const TensorSpec& tensor : tensors) {
    model.weights->type_of(tensor);
    model.weights->read(tensor, 0, tensor.numel(), at::empty({tensor.numel()}));
  }
}

const FuzzTarget target("gguf",
                        {{"model.gguf",
                          FileForm::gguf,
                          {R"("llama")", R"("gpt2")", R"("qwen3")", R"("gemma3")", R"("phi3")", R"("olmo2")", "8", "30",
                           "1", "[4, 8]", R"({"name": "output_norm.weight", "shape": [4], "type": 0, "offset": 0})",
                           R"(["a", "b", "ab"])", "[3, 3, 1]", "[0.0, -1.0, -2.0]", "0.00001", R"(["a b"])",
                           R"("default")", R"("yarn")"}}},
                        use);

}  // namespace gguf_target
}  // namespace zero
