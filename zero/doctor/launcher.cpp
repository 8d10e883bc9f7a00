#include "zero/doctor/launcher.h"

#include <ATen/ATen.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <optional>
#include <set>

#include "base/core_share.h"
#include "base/error.h"
#include "base/log.h"
#include "base/process/child_process.h"
#include "comm/mpi/mpi_library.h"
#include "comm/world/job.h"
#include "zero/doctor/program_output.h"

namespace zero {
namespace {

constexpr int patience_seconds = 60;
const std::string greeting = "hello: ";
const char* const install =
    "install Open MPI (Debian: apt-get install openmpi-bin), and put its bin/ first on the PATH";

/// mpirun's slots: the processor's cores, of which several hardware threads may be one.
int slots() {
  std::set<std::pair<int, int>> found;
  const CoreSet cores = own_cores();
  for (std::size_t core = 0; core < cores.size(); ++core) {
    if (!cores[core]) continue;
    const std::string folder = text("/sys/devices/system/cpu/cpu", core, "/topology/");
    int package = 0, number = int(core);
    std::ifstream(folder + "physical_package_id") >> package;
    std::ifstream(folder + "core_id") >> number;
    found.emplace(package, number);
  }
  return int(found.size());
}

/// "4.1.4" of "mpirun (Open MPI) 4.1.4" or "Open MPI v4.1.4, ..."; empty if there is none.
std::string version_in(const std::string& words) {
  const std::size_t first = words.find_first_of("0123456789");
  if (first == words.npos) return "";
  return words.substr(first, words.find_first_not_of("0123456789.", first) - first);
}

std::string first_error(const std::string& output) {
  const std::vector<std::string> lines = lines_of(output);
  for (const std::string& line : lines)
    if (line.find("error") != line.npos || line.find("rror:") != line.npos) return line;
  for (const std::string& line : lines)
    if (line.find_first_not_of("- ") != line.npos) return line;
  return "it printed nothing";
}

std::optional<std::string> greeting_in(const std::string& output) {
  for (const std::string& line : lines_of(output))
    if (line.starts_with(greeting)) return line.substr(greeting.size());
  return std::nullopt;
}

ProgramOutput start_two(const std::string& program, const std::string& option, bool oversubscribe) {
  std::vector<std::string> words = {"mpirun", "--bind-to", "none", "-np", "2"};
  if (oversubscribe) words.emplace_back("--oversubscribe");
  if (geteuid() == 0) words.emplace_back("--allow-run-as-root");
  words.insert(words.end(), {program, option});
  return output_of(words, patience_seconds);
}

/// The number of bytes that an all-reduce of `tensor` brings to a rank per second; the fastest of five.
double all_reduce_speed(Communicator& ranks, const at::Tensor& tensor) {
  double best = 0;
  for (int i = 0; i < 5; ++i) {
    ranks.barrier();
    const auto begin = std::chrono::steady_clock::now();
    ranks.all_reduce(tensor);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    best = std::max(best, double(tensor.nbytes()) / seconds.count());
  }
  return best;
}

}  // namespace

Finding examine_mpirun() {
  try {
    const std::string place = program_on_path("mpirun");
    if (place.empty()) return {"mpirun", Verdict::fault, "there is no mpirun on the PATH", install};
    const ProgramOutput said = output_of({place, "--version"}, patience_seconds);
    const std::string library = mpi_library(), first = said.text.substr(0, said.text.find('\n'));
    if (said.code != 0) return {"mpirun", Verdict::fault, text(place, " --version: ", first_error(said.text)), install};
    const std::string words = text(place, ": ", first, ", ", slots(), " slots; library ", library);
    if (version_in(first) != version_in(library))
      return {"mpirun", Verdict::fault, words + ": they do not match",
              "put the mpirun of the library that programs load (ldd zero_train) first on the PATH"};
    return {"mpirun", Verdict::ok, words, ""};
  } catch (const StoppedError&) {
    throw;
  } catch (const NotExecutedError& error) {
    return {"mpirun", Verdict::fault, error.what(), install};
  } catch (const OutOfTimeError& error) {
    return {"mpirun", Verdict::fault, error.what(), install};
  } catch (const Error& error) {
    return {"mpirun", Verdict::unknown, error.what(), "correct the PATH"};
  }
}

Finding examine_ranks(const std::string& program, const std::string& option) {
  const std::string remedy =
      "mpirun -np 2 hostname shows whether mpirun itself works; a container may need --shm-size and --ipc=host";
  try {
    if (program_on_path("mpirun").empty())
      return {"two ranks", Verdict::unknown, "there is no mpirun to start them", install};
    ProgramOutput said = start_two(program, option, false);
    const bool few_slots = said.text.find("not enough slots") != said.text.npos;
    if (few_slots) said = start_two(program, option, true);
    const auto words = greeting_in(said.text);
    if (said.code == 0 && words)
      return {"two ranks", Verdict::ok, *words + (few_slots ? " (by --oversubscribe, as scripts/train does)" : ""), ""};
    return {"two ranks", Verdict::fault, text("exit code ", said.code, ": ", first_error(said.text)), remedy};
  } catch (const StoppedError&) {
    throw;
  } catch (const OutOfTimeError&) {
    return {"two ranks", Verdict::fault, text("no answer in ", patience_seconds, " s"), remedy};
  } catch (const Error& error) {
    return {"two ranks", Verdict::unknown, error.what(), install};
  }
}

void greet(Job& job) {
  constexpr std::int64_t elements = 4 << 20;
  JobOptions options;
  options.mpi.deadline = std::chrono::seconds(patience_seconds / 2);
  job.configure(options.mpi);
  Communicator& ranks = job.communicator();
  at::Tensor tensor = at::arange(1000, at::kFloat) + job.rank();
  const float expected = float(999 * ranks.size() + ranks.size() * (ranks.size() - 1) / 2);
  ranks.all_reduce(tensor);
  if (tensor[999].item<float>() != expected)
    throw Error(text("the sum over ranks is ", tensor[999].item<float>(), ", not ", expected));
  const double speed = all_reduce_speed(ranks, at::zeros({elements}, at::kFloat));
  if (job.rank() == 0)
    std::cout << greeting << ranks.size() << " ranks agree on a sum; all-reduce of 16 MiB at " << std::fixed
              << std::setprecision(1) << speed / 1e9 << " GB/s" << std::endl;
}

}  // namespace zero
