// zero_export: a model directory, with a LoRA adapter merged in if wanted, as Hugging Face directory or as GGUF file.
#include <CLI/CLI.hpp>

#include <ATen/ATen.h>
#include <c10/util/Exception.h>

#include <chrono>
#include <filesystem>
#include <memory>

#include "comm/error.h"
#include "comm/log.h"
#include "models/adapted_weights.h"
#include "models/gguf_model.h"
#include "models/model.h"
#include "models/weight_pieces.h"

namespace zero {
namespace {

namespace fs = std::filesystem;

struct Arguments {
  std::string model, out, adapter, type, gguf, tokenizer;
  bool overwrite = false;
};

std::shared_ptr<WeightSource> open_weights(const std::shared_ptr<HfDirectory>& directory, const std::string& adapter) {
  auto base = std::make_shared<HfWeights>(directory);
  if (adapter.empty()) return base;
  return std::make_shared<MergedWeights>(base, std::make_shared<PeftDirectory>(adapter));
}

/// The type of the base's tensors, where nothing else is asked for.
at::ScalarType stored_type(const HfDirectory& directory) {
  const StoredTensor* embedding = directory.find("model.embed_tokens.weight");
  if (!embedding) embedding = directory.find("lm_head.weight");
  const auto type = embedding && embedding->type ? *embedding->type : at::kFloat;
  return type == at::kBFloat16 || type == at::kHalf ? type : at::kFloat;
}

at::ScalarType type_of(const std::string& name, const HfDirectory& directory) {
  if (name.empty()) return stored_type(directory);
  return name == "fp32" ? at::kFloat : name == "bf16" ? at::kBFloat16 : at::kHalf;
}

/// Nothing is exported over what it is made of, nor over anything that lies there unless that is asked for.
void check_out(const Arguments& arguments) {
  std::error_code none;
  for (const std::string& source : {arguments.model, arguments.adapter})
    if (!source.empty() && fs::equivalent(source, arguments.out, none))
      throw InputError(text(arguments.out, ": is what is to be exported; name another place"));
  const bool folder = fs::is_directory(arguments.out);
  if (!arguments.gguf.empty() && folder) throw InputError(text(arguments.out, ": is a folder; --gguf writes one file, name it"));
  if (arguments.gguf.empty() && fs::exists(arguments.out) && !folder) throw InputError(text(arguments.out, ": is no folder; name one, or a new name"));
  const bool empty = !fs::exists(arguments.out) || (folder && fs::is_empty(arguments.out));
  if (!empty && !arguments.overwrite) throw InputError(text(arguments.out, ": exists; name another place, or give --overwrite"));
}

void write_directory(const HfDirectory& directory, const Model& model, WeightSource& weights, const Arguments& arguments) {
  const std::vector<TensorSpec> tensors = tensors_of(model);
  weights.check(tensors);
  HfWriteOptions options{.type = type_of(arguments.type, directory)};
  options.tokenizer_from = arguments.tokenizer.empty() ? directory.folder() : arguments.tokenizer;
  options.base = directory.folder();
  HfWriter writer(arguments.out, model.config, tensors, options);
  for (const TensorSpec& tensor : tensors)
    read_in_pieces(weights, tensor, {options.type}, [&](const at::Tensor& values) { writer.append(values); });
  writer.finish();
}

/// Where the tokenizer is: as told, in the model directory, or nowhere.
std::string find_tokenizer(const HfDirectory& directory, const std::string& given) {
  if (!given.empty()) return given;
  if (fs::exists(directory.folder() + "/tokenizer.model")) return directory.folder();
  if (fs::exists(directory.folder() + "/tokenizer.json"))
    throw InputError(text(directory.folder(), ": has tokenizer.json only; a GGUF file is made of a SentencePiece tokenizer.model, name one by --tokenizer"));
  log_warning(directory.folder(), " has no tokenizer: the file will take token ids only; name a tokenizer.model by --tokenizer");
  return "";
}

void write_file(const HfDirectory& directory, const Model& model, WeightSource& weights, const Arguments& arguments) {
  GgufOptions options;
  options.type = ggml_type_of(arguments.gguf);
  options.tokenizer = find_tokenizer(directory, arguments.tokenizer);
  options.name = fs::absolute(directory.folder()).lexically_normal().filename().string();
  write_gguf(arguments.out, model, weights, options);
}

void describe(CLI::App& app, Arguments& arguments) {
  app.add_option("model", arguments.model, "model directory: config.json, *.safetensors, tokenizer files")->required();
  app.add_option("out", arguments.out, "folder to write; with --gguf the file")->required();
  app.add_option("--adapter", arguments.adapter, "LoRA adapter (a PEFT directory) to merge into the model");
  auto* type = app.add_option("--type", arguments.type, "of the tensors in a folder: fp32, bf16 or fp16; default: as the model is stored")
                   ->check(CLI::IsMember({"fp32", "bf16", "fp16"}));
  app.add_option("--gguf", arguments.gguf, "write one GGUF file for llama.cpp with matrices in this type: F32, F16, BF16 or Q8_0")
      ->check(CLI::IsMember(ggml_type_names(), CLI::ignore_case))
      ->excludes(type);
  app.add_option("--tokenizer", arguments.tokenizer, "tokenizer.model or a folder with one, to go along instead of the model directory's");
  app.add_flag("--overwrite", arguments.overwrite, "replace what lies at OUT");
}

int run(int argc, char** argv) {
  Arguments arguments;
  CLI::App app("Writes a model directory, with an adapter merged in, as Hugging Face directory or GGUF file.", "zero_export");
  describe(app, arguments);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    throw InputError(std::string(error.what()) + " (zero_export --help lists the arguments)");
  }
  const auto begin = std::chrono::steady_clock::now();
  check_out(arguments);
  const auto directory = std::make_shared<HfDirectory>(arguments.model);
  const auto weights = open_weights(directory, arguments.adapter);
  const Model model = make_llama(directory->config());
  if (arguments.gguf.empty())
    write_directory(*directory, model, *weights, arguments);
  else
    write_file(*directory, model, *weights, arguments);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  log_info(arguments.out, ": ", model.numel(), " parameters, written in ", seconds.count(), " s");
  return 0;
}

}  // namespace
}  // namespace zero

int main(int argc, char** argv) {
  zero::start_log(0, 1);
  try {
    return zero::run(argc, argv);
  } catch (const zero::Error& error) {
    zero::log_error(error.what());
    return static_cast<int>(error.code());
  } catch (const c10::Error& error) {
    zero::log_error(error.what_without_backtrace());
  } catch (const std::exception& error) {
    zero::log_error(error.what());
  }
  return static_cast<int>(zero::ExitCode::failure);
}
