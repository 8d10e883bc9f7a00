// Feeds changed tokenizer.json files and chat templates to what reads them, and uses what was accepted. Meant for a
// build with sanitizers: a finding is their report, an exception that is no InputError, or an input that takes more time
// or memory than is allowed.
//
// usage: fuzz_text tokenizers|templates SECONDS [--seed N] [--only NUMBER] [--cpu SECONDS] [--memory MIB] CORPUS...
// CORPUS of tokenizers: folders with a tokenizer.json; of templates: .jinja files, and cases.json with conversations.
// Input NUMBER depends on seed and corpus alone: --only repeats it, and leaves it as fuzz_input in the working directory.
#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json_text.h"
#include "base/log.h"
#include "models/text/conversation/answer_spans.h"
#include "models/text/jinja/error.h"
#include "models/text/pipeline/text_pipeline.h"
#include "tests/fuzz/fuzz_words.h"
#include "tests/fuzz/mutations.h"

namespace zero {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

struct Options {
  double seconds = 0, cpu = 30;
  std::uint64_t seed = 1;
  std::int64_t only = -1, memory_mib = 2048;
  std::vector<std::string> corpus;
};

/// Something that is read, and used where it is accepted. `made` is how a number's input looks.
struct Target {
  std::function<std::string(Mutations&)> made;
  std::function<void(const std::string& input, Mutations&)> use;
};

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

/// The peak since the last call, in MiB.
std::int64_t take_peak_mib() {
  std::ifstream status("/proc/self/status");
  std::int64_t kib = 0;
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmHWM:")) kib = std::stoll(line.substr(6));
  std::ofstream("/proc/self/clear_refs") << "5";
  return kib / 1024;
}

void use_tokenizer(const fs::path& folder, Mutations& mutations) {
  const TextPipeline pipeline = TextPipeline::load(folder);
  std::vector<std::int32_t> some;
  for (const std::string& text : hard_texts()) {
    const LocatedIds located = pipeline.locate(text);
    const std::vector<std::int32_t> ids = pipeline.encode(text, true);
    if (located.bytes.size() != located.ids.size() || located.characters.size() != located.ids.size())
      throw Error("as many spans as ids");
    for (const TextSpan& span : located.bytes)
      if (span.begin > span.end || span.end > text.size()) throw Error("a span outside of the text");
    pipeline.decode(ids, true);
    pipeline.next_cut(text, 1);
    some.insert(some.end(), ids.begin(), ids.end());
  }
  for (std::size_t i = 0; i < 20; ++i)
    some.push_back(static_cast<std::int32_t>(mutations.below(1U << (1 + i)) - (i % 5 == 0)));
  pipeline.decode(some, false);
}

Target tokenizers(const Options& options) {
  std::vector<std::string> sources;
  std::vector<Json> documents;
  for (const std::string& folder : options.corpus) {
    sources.push_back(read_text_file(folder + "/tokenizer.json"));
    documents.push_back(Json::parse(sources.back()));
  }
  const fs::path folder = fs::temp_directory_path() / ("fuzz-" + std::to_string(::getpid()));
  fs::create_directories(folder);
  const auto made = [sources, documents, parts = tokenizer_parts()](Mutations& mutations) {
    const std::size_t which = mutations.below(sources.size());
    if (mutations.below(4) == 0) return mutations.of_bytes(sources[which], sources, json_words());
    return mutations.of_json(documents[which], documents, parts)
        .dump(-1, ' ', mutations.below(2) == 0, Json::error_handler_t::replace);
  };
  const auto use = [folder](const std::string& input, Mutations& mutations) {
    std::ofstream(folder / "tokenizer.json", std::ios::binary) << input;
    use_tokenizer(folder, mutations);
  };
  return {made, use};
}

Target templates(const Options& options) {
  std::vector<std::string> sources;
  std::vector<Json> talks;
  for (const std::string& path : options.corpus) {
    if (path.ends_with(".jinja")) {
      sources.push_back(read_text_file(path));
      continue;
    }
    const Json file = Json::parse(read_text_file(path));
    for (const Json& one : file["cases"]) {
      Json request{{"messages", one["messages"]}, {"add_generation_prompt", talks.size() % 2 == 0}};
      if (one.contains("tools")) request["tools"] = one["tools"];
      if (one.contains("variables")) request["variables"] = one["variables"];
      talks.push_back(std::move(request));
    }
  }
  const auto made = [sources](Mutations& mutations) {
    const std::string& source = mutations.one_of(sources);
    return mutations.below(4) == 0 ? mutations.of_bytes(source, sources, template_words())
                                   : mutations.of_template(source, sources, template_words());
  };
  const auto use = [talks](const std::string& input, Mutations& mutations) {
    const ConversationTemplate chat({input, "the input"}, {{"bos_token", "<s>"}, {"eos_token", "</s>"}});
    for (int i = 0; i < 3; ++i) try {
        chat.render(mutations.one_of(talks));
      } catch (const InputError&) {  // the next conversation may do
      }
    end_of_answer(chat, "</s>");
    render_answers(chat,
                   {{"system", "s"}, {"user", "q \u00e9"}, {"assistant", "a\n"}, {"user", "?"}, {"assistant", "b"}});
  };
  return {made, use};
}

std::int64_t under_way = -1;

void too_late(int) {
  std::cerr << "finding: input " << under_way << " takes minutes" << std::endl;
  ::_exit(3);
}

int run(const Target& target, const Options& options) {
  std::int64_t accepted = 0, refused = 0, peak_mib = 0, number = std::max<std::int64_t>(options.only, 0);
  double longest = 0;
  std::signal(SIGALRM, too_late);
  const auto begin = std::chrono::steady_clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(); };
  for (; options.only < 0 ? elapsed() < options.seconds : number == options.only; ++number) {
    under_way = number;
    ::alarm(600);
    Mutations mutations(options.seed * 1'000'003 + static_cast<std::uint64_t>(number));
    const std::string input = target.made(mutations);
    if (options.only >= 0) std::ofstream("fuzz_input", std::ios::binary) << input;
    const double before = cpu_seconds();
    take_peak_mib();
    try {
      target.use(input, mutations);
      ++accepted;
    } catch (const InputError& error) {
      if (options.only >= 0) std::cout << error.what() << "\n";
      ++refused;
    } catch (const std::exception& error) {
      std::cerr << "finding: input " << number << " of seed " << options.seed << ": " << error.what() << std::endl;
      return 1;
    }
    const double took = cpu_seconds() - before;
    const std::int64_t mib = take_peak_mib();
    longest = std::max(longest, took);
    peak_mib = std::max(peak_mib, mib);
    if (took <= options.cpu && mib <= options.memory_mib) continue;
    std::cerr << "finding: input " << number << " of seed " << options.seed << " took " << took << " s and " << mib
              << " MiB" << std::endl;
    return 1;
  }
  std::cout << accepted + refused << " inputs in " << elapsed() << " s: " << accepted << " used, " << refused
            << " refused; longest " << longest << " s of CPU, peak " << peak_mib << " MiB" << std::endl;
  return 0;
}

int fuzz(const std::vector<std::string>& words) {
  if (words.size() < 3 || (words[0] != "tokenizers" && words[0] != "templates")) {
    std::cerr
        << "usage: fuzz_text tokenizers|templates SECONDS [--seed N] [--only NUMBER] [--cpu SECONDS] [--memory MIB] CORPUS...\n";
    return 2;
  }
  Options options;
  options.seconds = std::stod(words[1]);
  for (std::size_t i = 2; i < words.size(); ++i) {
    if (!words[i].starts_with("--") || i + 1 == words.size()) {
      options.corpus.push_back(words[i]);
      continue;
    }
    const std::string& name = words[i++];
    if (name == "--seed") options.seed = std::stoull(words[i]);
    if (name == "--only") options.only = std::stoll(words[i]);
    if (name == "--cpu") options.cpu = std::stod(words[i]);
    if (name == "--memory") options.memory_mib = std::stoll(words[i]);
  }
  return run(words[0] == "tokenizers" ? tokenizers(options) : templates(options), options);
}

}  // namespace
}  // namespace zero

int main(int argc, char** argv) { return zero::fuzz({argv + 1, argv + argc}); }
