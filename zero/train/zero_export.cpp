// zero_export: a model directory or a checkpoint, with a LoRA adapter merged in if wanted, as Hugging Face directory or as GGUF file.
#include <CLI/CLI.hpp>

#include <ATen/ATen.h>
#include <c10/util/Exception.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>

#include "comm/error.h"
#include "comm/log.h"
#include "models/adapted_weights.h"
#include "models/gguf_model.h"
#include "models/model.h"
#include "models/weight_pieces.h"
#include "zero/train/checkpoint_export.h"

namespace zero {
namespace {

namespace fs = std::filesystem;

struct Arguments {
  std::string model, out, adapter, type, gguf, tokenizer;
  bool overwrite = false;
};

/// What is exported: a model directory's weights, or a checkpoint's, and how they are written where nothing else is asked for.
struct Source {
  ModelConfig config;
  std::shared_ptr<WeightSource> weights;
  HfWriteOptions options;
};

/// The type of the base's tensors.
at::ScalarType stored_type(const HfDirectory& directory) {
  const StoredTensor* embedding = directory.find("model.embed_tokens.weight");
  if (!embedding) embedding = directory.find("lm_head.weight");
  const auto type = embedding && embedding->type ? *embedding->type : at::kFloat;
  return type == at::kBFloat16 || type == at::kHalf ? type : at::kFloat;
}

Source open_directory(const std::string& folder) {
  const auto directory = std::make_shared<HfDirectory>(folder);
  HfWriteOptions options{.type = stored_type(*directory)};
  options.tokenizer_from = options.base = folder;
  return {directory->config(), std::make_shared<HfWeights>(directory), options};
}

Source open_source(const Arguments& arguments, const CheckpointExport* checkpoint) {
  Source source = checkpoint ? Source{checkpoint->model(), checkpoint->weights(), checkpoint->options()} : open_directory(arguments.model);
  if (!arguments.adapter.empty()) source.weights = std::make_shared<MergedWeights>(source.weights, std::make_shared<PeftDirectory>(arguments.adapter));
  if (!arguments.type.empty()) source.options.type = arguments.type == "fp32" ? at::kFloat : arguments.type == "bf16" ? at::kBFloat16 : at::kHalf;
  if (!arguments.tokenizer.empty()) source.options.tokenizer_from = arguments.tokenizer;
  const std::string& tokenizer = source.options.tokenizer_from;
  if (!tokenizer.empty() && !fs::exists(tokenizer))
    throw InputError(text(tokenizer, ": does not exist, and the tokenizer files are to be copied from there: name another place by --tokenizer"));
  return source;
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

void write_directory(const Source& source, const Model& model, const Arguments& arguments) {
  const std::vector<TensorSpec> tensors = tensors_of(model);
  source.weights->check(tensors);
  HfWriter writer(arguments.out, model.config, tensors, source.options);
  for (const TensorSpec& tensor : tensors)
    read_in_pieces(*source.weights, tensor, {source.options.type}, [&](const at::Tensor& values) { writer.append(values); });
  writer.finish();
}

/// Where the tokenizer of a GGUF file is: as told, where the model's is, or nowhere.
std::string find_tokenizer(const Source& source, const Arguments& arguments) {
  const std::string& folder = source.options.tokenizer_from;
  if (!arguments.tokenizer.empty()) return arguments.tokenizer;
  if (!folder.empty() && (!fs::is_directory(folder) || fs::exists(folder + "/tokenizer.model"))) return folder;
  if (!folder.empty() && fs::exists(folder + "/tokenizer.json"))
    throw InputError(text(folder, ": has tokenizer.json only; a GGUF file is made of a SentencePiece tokenizer.model, name one by --tokenizer"));
  log_warning(arguments.model, " has no tokenizer: the file will take token ids only; name a tokenizer.model by --tokenizer");
  return "";
}

void write_file(const Source& source, const Model& model, const Arguments& arguments) {
  GgufOptions options;
  options.type = ggml_type_of(arguments.gguf);
  options.tokenizer = find_tokenizer(source, arguments);
  options.name = fs::absolute(arguments.model).lexically_normal().filename().string();
  write_gguf(arguments.out, model, *source.weights, options);
}

/// A checkpoint of adapters is exported as the adapter that it is.
void write_adapter(const CheckpointExport& checkpoint, const Arguments& arguments) {
  if (!arguments.gguf.empty() || !arguments.adapter.empty() || !arguments.type.empty() || !arguments.tokenizer.empty())
    throw InputError(text(arguments.model, ": is a checkpoint of an adapter, which is written as such: export it without further options, then merge it into its model by --adapter"));
  checkpoint.write_adapter(arguments.out);
}

void describe(CLI::App& app, Arguments& arguments) {
  app.add_option("model", arguments.model, "model directory (config.json, *.safetensors, tokenizer files), or a checkpoint of zero_train")->required();
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
  CLI::App app("Writes a model directory or a checkpoint, with an adapter merged in, as Hugging Face directory or GGUF file.", "zero_export");
  describe(app, arguments);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    throw InputError(std::string(error.what()) + " (zero_export --help lists the arguments)");
  }
  const auto begin = std::chrono::steady_clock::now();
  check_out(arguments);
  std::optional<CheckpointExport> checkpoint;
  if (CheckpointExport::is_checkpoint(arguments.model)) checkpoint.emplace(arguments.model);
  if (checkpoint && checkpoint->is_adapter()) {
    write_adapter(*checkpoint, arguments);
    log_info(arguments.out, ": the adapter of ", arguments.model);
    return 0;
  }
  const Source source = open_source(arguments, checkpoint ? &*checkpoint : nullptr);
  const Model model = make_llama(source.config);
  if (arguments.gguf.empty())
    write_directory(source, model, arguments);
  else
    write_file(source, model, arguments);
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
