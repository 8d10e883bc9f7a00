#include "cifar10.h"

#include <ATen/ATen.h>

#include <optional>

#include "base/error.h"
#include "base/files/file.h"
#include "base/files/lookup.h"

namespace vision {
namespace {

using zero::Error, zero::File, zero::InputError;

constexpr std::int64_t record_bytes = 1 + 3 * 32 * 32;

std::vector<std::string> files_of(const std::string& folder, Cifar10::Part part) {
  if (part == Cifar10::Part::test) return {folder + "/test_batch.bin"};
  std::vector<std::string> files;
  for (int number = 1; number <= 5; ++number)
    files.push_back(folder + "/data_batch_" + std::to_string(number) + ".bin");
  return files;
}

/// uint8 [records, record_bytes].
at::Tensor read_records(const std::string& path, int classes) {
  std::optional<File> file;
  try {
    file.emplace(File::open(path));
  } catch (const Error& error) {
    throw InputError(std::string(error.what()) +
                     ": a file of CIFAR-10 is wanted there; "
                     "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz, unpacked, has them");
  }
  const std::int64_t bytes = file->size();
  if (bytes == 0 || bytes % record_bytes != 0)
    throw InputError(path + ": " + std::to_string(bytes) +
                     " bytes are no records of CIFAR-10's binary format, which take " + std::to_string(record_bytes) +
                     " each: download it again (the binary version, not that for Python)");
  const at::Tensor records = at::empty({bytes / record_bytes, record_bytes}, at::kByte);
  file->read_at(records.data_ptr(), bytes, 0);
  const at::Tensor labels = records.select(1, 0);
  if (const at::Tensor wrong = labels.ge(classes).nonzero(); wrong.numel() > 0) {
    const auto record = wrong[0].item<std::int64_t>();
    throw InputError(
        path + ": record " + std::to_string(record) + " (from 0) has the label " +
        std::to_string(labels[record].item<std::int64_t>()) + ": labels of " + std::to_string(classes) +
        " classes are below that; is it a file of CIFAR-10 (not CIFAR-100), and Cifar10Options.classes right?");
  }
  return records;
}

at::Tensor by_channel(const std::array<double, 3>& values) {
  return at::tensor({values[0], values[1], values[2]}, at::kFloat).view({3, 1, 1});
}

}  // namespace

Cifar10::Cifar10(const std::string& folder, Part part, const Cifar10Options& options)
    : Cifar10(files_of(folder, part), options) {}

Cifar10::Cifar10(const std::vector<std::string>& files, const Cifar10Options& options)
    : options_(options),
      mean_(by_channel(options.mean)),
      std_(by_channel(options.std)),
      epoch_(std::make_shared<std::atomic<std::int64_t>>(0)) {
  if (files.empty()) throw InputError("Cifar10: no files were named");
  std::vector<at::Tensor> parts;
  for (const std::string& file : files) parts.push_back(read_records(file, options.classes));
  const at::Tensor records = at::cat(parts);
  labels_ = records.select(1, 0).to(at::kLong);
  pictures_ = records.narrow(1, 1, record_bytes - 1).reshape({-1, 3, 32, 32});
}

torch::data::Example<> Cifar10::get(std::size_t index) {
  at::Tensor picture = pictures_[std::int64_t(index)];
  if (options_.augmentation) picture = (*options_.augmentation)(picture, *epoch_, index);
  return {picture.to(at::kFloat).div_(255).sub_(mean_).div_(std_), labels_[std::int64_t(index)]};
}

std::optional<std::size_t> Cifar10::size() const { return std::size_t(labels_.size(0)); }

void Cifar10::set_epoch(std::int64_t epoch) const { *epoch_ = epoch; }

std::vector<std::string> training_files(const std::string& folder) {
  const auto path = [&](int number) { return folder + "/data_batch_" + std::to_string(number) + ".bin"; };
  std::vector<std::string> files{path(1)};
  for (int number = 2; zero::is_file(path(number)); ++number) files.push_back(path(number));
  return files;
}

}  // namespace vision
