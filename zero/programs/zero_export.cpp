// zero_export: writes a model directory or a checkpoint as a Hugging Face directory or a GGUF file, optionally with a
// LoRA adapter merged.
#include <CLI/CLI.hpp>

#include <ATen/ATen.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <filesystem>
#include <iomanip>

#include "base/error.h"
#include "base/files/file.h"
#include "base/files/lookup.h"
#include "base/log.h"
#include "cmake/version.h"
#include "models/families/families.h"
#include "models/formats/gguf/gguf_check.h"
#include "models/formats/gguf_model.h"
#include "models/lora/gguf_adapter.h"
#include "models/model.h"
#include "models/text/tokenizer.h"
#include "models/weight_chunks.h"
#include "zero/config/model_paths.h"
#include "zero/config/read_paths.h"
#include "zero/output/result_folder.h"
#include "zero/output/run_mark.h"
#include "zero/programs/checkpoint_export.h"
#include "zero/programs/command_line.h"
#include "zero/programs/model_source.h"
#include "zero/programs/program.h"

namespace zero {
namespace {

namespace fs = std::filesystem;

struct Arguments {
  std::string model, out, adapter, type, gguf, gguf_adapter, tokenizer, base;

  bool writes_file() const { return !gguf.empty() || !gguf_adapter.empty(); }
  bool overwrite = false, allow_unused = false;
};

ModelPlace place_of(const Arguments& arguments) {
  return {arguments.model, arguments.adapter, arguments.tokenizer,
          arguments.allow_unused ? UnusedTensors::allow : UnusedTensors::refuse, arguments.base};
}

ModelSource open_source(const Arguments& arguments) {
  ModelSource source = open_model(place_of(arguments));
  if (!arguments.gguf.empty()) check_gguf(source.config);  // before the tokenizer, which another model might not need
  if (!arguments.type.empty())
    source.options.type = arguments.type == "fp32" ? at::kFloat : arguments.type == "bf16" ? at::kBFloat16 : at::kHalf;
  const std::string& tokenizer = source.options.tokenizer.tokenizer;
  if (!tokenizer.empty() && !is_there(tokenizer))
    throw InputError(text(
        tokenizer,
        ": does not exist, and the tokenizer files are to be copied from there: name another place by --tokenizer"));
  return source;
}

/// Throws InputError if the output would overwrite an input, under any of its names.
void refuse_reads(const std::vector<ReadPath>& reads, const std::string& out) {
  if (const auto read = first_read_of(reads, out))
    throw InputError(
        text(out, ": ", read->path, " (", read->name, ") is there, an input of the export; name another place"));
}

bool is_gguf(const std::string& path) {
  const File file = File::open(path);
  char magic[4] = {};
  if (file.size() >= 4) file.read_at(magic, 4, 0);
  return file.size() == 0 || std::string_view(magic, 4) == "GGUF";
}

/// Throws InputError if the output would overwrite anything else. With --overwrite, allows that for files of the same
/// kind and for folders that this program wrote.
void check_out(const Arguments& arguments) {
  std::vector<ReadPath> reads{{"the model", arguments.model}};
  if (!arguments.adapter.empty()) reads.push_back({"--adapter", arguments.adapter});
  if (!arguments.gguf_adapter.empty()) reads.push_back({"--gguf-adapter", arguments.gguf_adapter});
  if (!arguments.tokenizer.empty()) reads.push_back({"--tokenizer", arguments.tokenizer});
  if (!arguments.base.empty()) reads.push_back({"--base", arguments.base});
  refuse_reads(reads, arguments.out);
  const bool folder = is_folder(arguments.out);
  if (!arguments.writes_file() && fs::path(arguments.out).extension() == ".gguf")
    throw InputError(
        text(arguments.out,
             ": a GGUF file is written with --gguf TYPE (F32, F16, BF16, Q8_0 or Q4_0); without it OUT is a folder"));
  if (arguments.writes_file() && folder)
    throw InputError(text(arguments.out, ": is a folder; ", arguments.gguf.empty() ? "--gguf-adapter" : "--gguf",
                          " writes one file, name it"));
  if (!arguments.writes_file() && is_there(arguments.out) && !folder)
    throw InputError(text(arguments.out, ": is no folder; name one, or a new name"));
  const bool empty = !is_there(arguments.out) || (folder && names_in(arguments.out).empty());
  if (empty) return;
  if (!arguments.overwrite) throw InputError(text(arguments.out, ": exists; name another place, or give --overwrite"));
  if (folder && !is_marked(arguments.out, Mark::result))
    throw InputError(text(
        arguments.out,
        ": has no mark of a result of this program (somebody else's, or an earlier version's), so --overwrite replaces nothing there; name another place, or move it away"));
  if (!folder && !is_gguf(arguments.out))
    throw InputError(
        text(arguments.out, ": is no GGUF file, so --overwrite does not replace it; name another place, or remove it"));
}

void write_directory(const ModelSource& source, const Model& model, const Arguments& arguments) {
  const std::vector<TensorSpec> tensors = tensors_of(model);
  source.weights->check(tensors);
  source.weights->check_values();
  ResultFolder folder(arguments.out);
  folder.mark();
  HfWriter writer(arguments.out, model.config, tensors, source.options);
  for (const TensorSpec& tensor : tensors)
    read_in_chunks(*source.weights, tensor, {source.options.type},
                   [&](const at::Tensor& values) { writer.append(values); });
  writer.finish();
  folder.finish();
}

/// Returns the tokenizer for a GGUF file; empty if there is none.
TokenizerSource gguf_tokenizer(const ModelSource& source, const Arguments& arguments) {
  const std::string& place = source.options.tokenizer.tokenizer;
  if (Tokenizer::lies_at(place) || !arguments.tokenizer.empty()) return source.options.tokenizer;
  log_warning(arguments.model, " has no tokenizer: the file will take token ids only; name one by --tokenizer");
  return {};
}

void write_file(const ModelSource& source, const Model& model, const Arguments& arguments) {
  GgufOptions options;
  options.type = ggml_type_of(arguments.gguf);
  options.tokenizer = gguf_tokenizer(source, arguments);
  options.name = source.name;
  write_gguf(arguments.out, model, *source.weights, options);
}

/// Writes the adapter alone, for llama.cpp to use with the model's own GGUF file.
void write_gguf_adapter_file(const Arguments& arguments) {
  const ModelSource source = open_model(place_of(arguments));  // --gguf-adapter excludes --adapter
  const Model model = make_model(source.config);
  source.weights->check(tensors_of(model));
  write_gguf_adapter(arguments.out, *open_adapter(arguments.gguf_adapter, model), model,
                     name_of_place(arguments.gguf_adapter));
}

/// Exports a checkpoint of adapters as an adapter.
void write_adapter(const Arguments& arguments) {
  if (arguments.writes_file() || !arguments.adapter.empty() || !arguments.type.empty())
    throw InputError(text(
        arguments.model,
        ": is a checkpoint of an adapter, which is written as such: export it without further options but --base and --tokenizer, then merge it into its model by --adapter"));
  const CheckpointExport checkpoint(arguments.model, arguments.base, arguments.tokenizer);
  refuse_reads(checkpoint.reads(), arguments.out);
  checkpoint.check_adapter();
  ResultFolder folder(arguments.out);
  folder.mark();
  checkpoint.write_adapter(arguments.out);
  folder.finish();
}

/// Returns an explanation for a llama.cpp type that is not supported here; empty for other words.
std::string refuse_foreign_type(const std::string& type) {
  std::string name = type;
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::toupper(c); });
  const bool quantized = name.starts_with("Q") || name.starts_with("IQ") || name.starts_with("TQ");
  if (!quantized || name == "Q8_0" || name == "Q4_0") return "";
  return text(type, ": is not written here (F32, F16, BF16, Q8_0 and Q4_0 are): write F16, then let llama.cpp's ",
              "llama-quantize make it: llama-quantize OUT.gguf OUT2.gguf ", name);
}

void describe(CLI::App& app, Arguments& arguments) {
  app.add_option(
         "model", arguments.model,
         "model directory (config.json, *.safetensors, tokenizer files), a GGUF file, or a run's folder or a checkpoint of "
         "zero_train")
      ->required();
  app.add_option("out", arguments.out, "folder to write; with --gguf the file")->required();
  auto* merged =
      app.add_option("--adapter", arguments.adapter,
                     "LoRA adapter (a PEFT directory, or the folder of the run that made it) to merge into the model");
  auto* type = app.add_option("--type", arguments.type,
                              "type of the tensors in a folder: fp32, bf16 or fp16; default: as the model is stored")
                   ->check(CLI::IsMember({"fp32", "bf16", "fp16"}));
  auto* gguf =
      app.add_option("--gguf", arguments.gguf,
                     "write one GGUF file for llama.cpp with matrices in this type: F32, F16, BF16, Q8_0 or Q4_0")
          ->check(refuse_foreign_type)
          ->check(CLI::IsMember(ggml_type_names(), CLI::ignore_case))
          ->excludes(type);
  auto* tokenizer =
      app.add_option("--tokenizer", arguments.tokenizer,
                     "tokenizer.json, tokenizer.model or a folder with one, to copy instead of the model directory's");
  app.add_option("--base", arguments.base, base_help);
  app.add_option(
         "--gguf-adapter", arguments.gguf_adapter,
         "write this adapter alone as one GGUF file, which llama.cpp opens together with the GGUF file of its model")
      ->excludes(type)
      ->excludes(gguf)
      ->excludes(merged)
      ->excludes(tokenizer);
  app.add_flag("--overwrite", arguments.overwrite, "replace what is at OUT");
  app.add_flag("--allow-unused", arguments.allow_unused, allow_unused_help);
}

int run(int argc, char** argv) {
  Arguments arguments;
  CLI::App app(
      "Writes a model directory or a checkpoint, with an adapter merged in, as Hugging Face directory or GGUF file.",
      "zero_export");
  describe(app, arguments);
  if (const auto code = parse_command_line(app, argc, argv, version_text("zero_export"))) return *code;
  const auto begin = std::chrono::steady_clock::now();
  const ModelPlace place = resolve(place_of(arguments));
  require_base_of_checkpoint(place);
  // A run stands for its model, stopped or finished. Its checkpoint of adapters stands for the adapter.
  const bool names_run = is_file(arguments.model + "/config.toml");
  arguments.model = place.model;
  arguments.adapter = place.adapter;
  arguments.gguf_adapter = resolve_adapter(arguments.gguf_adapter, "--gguf-adapter");
  check_out(arguments);
  if (!names_run && is_checkpoint(arguments.model) && holds_adapter(arguments.model)) {
    write_adapter(arguments);
    log_info(arguments.out, ": the adapter of ", arguments.model);
    return 0;
  }
  if (!arguments.gguf_adapter.empty()) {
    write_gguf_adapter_file(arguments);
    log_info(arguments.out, ": the adapter ", arguments.gguf_adapter, " of ", arguments.model);
    return 0;
  }
  const ModelSource source = open_source(arguments);
  refuse_reads({{"the tokenizer", source.options.tokenizer.tokenizer}, {"the base", source.options.base}},
               arguments.out);
  const Model model = make_model(source.config);
  if (arguments.gguf.empty())
    write_directory(source, model, arguments);
  else
    write_file(source, model, arguments);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  log_info(arguments.out, ": ", arguments.model, arguments.adapter.empty() ? "" : " with " + arguments.adapter, ", ",
           model.numel(), " parameters, written in ", std::fixed, std::setprecision(1), seconds.count(), " s");
  return 0;
}

}  // namespace
}  // namespace zero

int main(int argc, char** argv) {
  return zero::run_program([&] { return zero::run(argc, argv); });
}
