// zero_fetch: fetches a model or data set from a Hugging Face hub. It needs neither LibTorch nor MPI.
#include <CLI/CLI.hpp>

#include <cstdlib>
#include <iostream>

#include "base/error.h"
#include "base/log.h"
#include "cmake/version.h"
#include "zero/fetch/fetch.h"
#include "zero/fetch/http_client.h"
#include "zero/programs/command_line.h"
#include "zero/programs/written_output.h"

namespace zero {
namespace {

struct Arguments {
  std::string repository;
  bool dataset = false;
  FetchOptions fetch;
};

void describe(CLI::App& app, Arguments& arguments) {
  FetchOptions& fetch = arguments.fetch;
  app.add_option("repository", arguments.repository,
                 "OWNER/NAME or OWNER/NAME@REVISION: a branch, a tag or a commit; default: main")
      ->required();
  app.add_flag("--dataset", arguments.dataset, "it is a data set: fetch all of its files");
  auto* to = app.add_option("--to", fetch.to,
                            "folder for the files; default: the cache that Python programs share (HF_HOME, else "
                            "~/.cache/huggingface)");
  app.add_option("--include", fetch.selection.include,
                 "glob of files to fetch instead of the default ones, such as '*Q8_0.gguf'; may be repeated")
      ->expected(1)
      ->take_all();
  app.add_option("--exclude", fetch.selection.exclude, "glob of files to leave out; may be repeated")
      ->expected(1)
      ->take_all();
  app.add_flag("--overwrite", fetch.overwrite, "replace files of the folder --to that differ from the hub's")
      ->needs(to);
  app.add_option("--retries", fetch.tries, "failures in a row to wait for, each time twice as long; default: 6")
      ->check(CLI::Range(0, 1000));
}

int run(int argc, char** argv) {
  Arguments arguments;
  CLI::App app(
      "Fetches a model or data set from a Hugging Face hub, verifies every file, and prints the folder, which "
      "model.path takes. Run it again after an interruption: it goes on. Of a model it fetches configuration, weights "
      "(*.safetensors), tokenizer and licence. HF_TOKEN, HF_ENDPOINT, HF_HOME and proxy variables count.",
      "zero_fetch");
  describe(app, arguments);
  const std::string version_text = "zero_fetch " + version() + "\n" + http_library();
  if (const auto code = parse_command_line(app, argc, argv, version_text)) return *code;
  arguments.fetch.repository =
      Repository::parse(arguments.repository, arguments.dataset ? RepositoryKind::dataset : RepositoryKind::model);
  arguments.fetch.agent = "zero_fetch/" + version().substr(0, version().find(' '));
  std::cout << fetch(arguments.fetch, HubSettings::of([](const char* name) { return std::getenv(name); })) << '\n';
  require_written_output();
  return 0;
}

}  // namespace
}  // namespace zero

// run_program() knows LibTorch's exceptions.
int main(int argc, char** argv) {
  zero::start_log(0, 1);
  try {
    return zero::run(argc, argv);
  } catch (const zero::Error& error) {
    zero::log_error(error.what());
    return static_cast<int>(error.code());
  } catch (const std::exception& error) {
    zero::log_error("internal error: ", error.what());
    return static_cast<int>(zero::ExitCode::failure);
  }
}
