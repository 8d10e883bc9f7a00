#include "models/formats/gguf/gguf_config.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <set>
#include <vector>

#include "base/error.h"
#include "base/json_text.h"
#include "base/log.h"

namespace zero {
namespace {

using nlohmann::json;

struct Field {
  const char* key;   // behind the architecture's name
  const char* name;  // in config.json
  bool is_float = false, is_needed = true;
};

struct Row {
  GgufArchitecture architecture;
  std::vector<Field> fields;
};

const std::vector<Row>& rows() {
  static const std::vector<Row> all{{{"llama", "llama", true},
                                     {{"context_length", "max_position_embeddings"},
                                      {"embedding_length", "hidden_size"},
                                      {"block_count", "num_hidden_layers"},
                                      {"feed_forward_length", "intermediate_size"},
                                      {"attention.head_count", "num_attention_heads"},
                                      {"attention.head_count_kv", "num_key_value_heads", false, false},
                                      {"attention.key_length", "head_dim", false, false},
                                      {"attention.layer_norm_rms_epsilon", "rms_norm_eps", true},
                                      {"rope.freq_base", "rope_theta", true, false},
                                      {"vocab_size", "vocab_size", false, false}}}};
  return all;
}

const Row& row_of(const GgufFile& file) {
  if (const auto type = file.word("general.type"); type && *type != "model")
    throw InputError(text(file.path(), ": holds a GGUF file of general.type \"", *type,
                          "\", no model; an adapter as GGUF is for llama.cpp, here its PEFT directory is named"));
  const auto name = file.word("general.architecture");
  if (!name) throw InputError(text(file.path(), ": has no general.architecture"));
  std::string known;
  for (const Row& row : rows()) {
    if (row.architecture.name == *name) return row;
    known += (known.empty() ? "\"" : ", \"") + row.architecture.name + "\"";
  }
  throw InputError(text(file.path(), ": general.architecture \"", *name, "\" is not read; known are ", known));
}

/// Refuses a value of a key that only says what is done here anyway.
class Expectations {
 public:
  Expectations(const GgufFile& file, const std::string& prefix) : file_(file), prefix_(prefix) {}

  void integer(const char* key, std::int64_t expected) {
    known_.insert(prefix_ + key);
    if (const auto value = file_.integer(prefix_ + key); value && *value != expected)
      refuse(key, std::to_string(*value), std::to_string(expected));
  }
  void word(const char* key, const char* expected) {
    known_.insert(prefix_ + key);
    if (const auto value = file_.word(prefix_ + key); value && *value != expected) refuse(key, *value, expected);
  }
  void knows(const std::string& key) { known_.insert(key); }
  /// Refuses the architecture's other keys.
  void close() const {
    for (const auto& [key, value] : file_.metadata())
      if (key.starts_with(prefix_) && !known_.contains(key))
        throw InputError(text(file_.path(), ": ", key, " is not known here, and would change the model's results"));
  }

 private:
  [[noreturn]] void refuse(const char* key, const std::string& value, const std::string& expected) const {
    throw InputError(text(file_.path(), ": ", prefix_, key, " = ", value, ", where only ", expected, " is done"));
  }
  const GgufFile& file_;
  std::string prefix_;
  std::set<std::string> known_;
};

/// rope_freqs.weight holds what frequencies are divided by, not the numbers that these came from: of the two settings
/// that models of this kind have, the one that gives them.
json scaling_of(const GgufFile& file, std::int64_t head_dim, double theta) {
  const GgufEntry* stored = file.find("rope_freqs.weight");
  if (!stored) return nullptr;
  const std::int64_t pairs = head_dim / 2;
  if (stored->type != GgmlType::f32 || stored->numel() != pairs)
    throw InputError(text(file.path(), ": rope_freqs.weight must be ", pairs, " values in F32"));
  std::vector<float> factors(static_cast<std::size_t>(pairs));
  file.read(*stored, 0, pairs, factors.data());
  const double old_context = 8192, low = 1, high = 4;
  for (const double factor : {8.0, 32.0}) {
    bool agrees = true;
    for (std::int64_t i = 0; i < pairs; ++i) {
      const double wavelength = 2 * std::numbers::pi * std::pow(theta, 2.0 * double(i) / double(head_dim));
      const double kept = std::clamp((old_context / wavelength - low) / (high - low), 0.0, 1.0);
      const double wanted = 1 / ((1 - kept) / factor + kept);
      agrees = agrees && std::fabs(double(factors[std::size_t(i)]) - wanted) < 1e-4 * wanted;
    }
    if (agrees)
      return {{"rope_type", "llama3"},
              {"factor", factor},
              {"low_freq_factor", low},
              {"high_freq_factor", high},
              {"original_max_position_embeddings", std::int64_t(old_context)}};
  }
  throw InputError(text(file.path(),
                        ": rope_freqs.weight is of no known scaling of rotary frequencies (Llama 3.1's and "
                        "3.2's are); take the model's Hugging Face directory"));
}

void add_tokens(const GgufFile& file, json& config) {
  const auto bos = file.integer("tokenizer.ggml.bos_token_id"), eos = file.integer("tokenizer.ggml.eos_token_id"),
             eot = file.integer("tokenizer.ggml.eot_token_id");
  if (bos) config["bos_token_id"] = *bos;
  if (eos && eot && *eos != *eot)
    config["eos_token_id"] = {*eos, *eot};
  else if (eos)
    config["eos_token_id"] = *eos;
}

}  // namespace

const GgufArchitecture& architecture_of(const GgufFile& file) { return row_of(file).architecture; }

std::string config_json_of(const GgufFile& file) {
  const Row& row = row_of(file);
  const std::string prefix = row.architecture.name + ".";
  Expectations expect(file, prefix);
  json config{{"model_type", row.architecture.model_type}, {"tie_word_embeddings", !file.find("output.weight")}};
  for (const Field& field : row.fields) {
    const std::string key = prefix + field.key;
    expect.knows(key);
    if (field.is_float) {
      if (const auto value = file.number(key)) config[field.name] = *value;
    } else if (const auto value = file.integer(key)) {
      config[field.name] = *value;
    }
    if (field.is_needed && !config.contains(field.name)) throw InputError(text(file.path(), ": ", key, " is missing"));
  }
  const auto at_least_1 = [&](const char* name) {
    const auto value = config[name].get<std::int64_t>();
    if (value < 1) throw InputError(text(file.path(), ": ", name, " = ", value, ": must be 1 or more"));
    return value;
  };
  const GgufEntry* embedding = file.find("token_embd.weight");
  if (!config.contains("vocab_size") && embedding && embedding->shape.size() == 2)
    config["vocab_size"] = embedding->shape[0];
  if (!config.contains("head_dim")) config["head_dim"] = at_least_1("hidden_size") / at_least_1("num_attention_heads");
  const std::int64_t head_dim = at_least_1("head_dim");
  expect.integer("attention.value_length", head_dim);
  expect.integer("rope.dimension_count", head_dim);
  expect.integer("expert_count", 0);
  expect.integer("expert_used_count", 0);
  expect.word("rope.scaling.type", "none");
  expect.knows(prefix + "tensor_data_layout");  // where the converter had the weights from
  expect.close();
  if (json scaling = scaling_of(file, head_dim, config.value("rope_theta", 10000.0)); !scaling.is_null())
    config["rope_scaling"] = std::move(scaling);
  add_tokens(file, config);
  return config.dump(2);
}

}  // namespace zero
