#pragma once
// Cifar10: a dataset of torch::data for CIFAR-10 (Krizhevsky 2009) and other pictures in its binary format. A record
// has one label byte, then 32 x 32 bytes each for red, green and blue, row by row.
//
//   auto train = vision::Cifar10("cifar-10-batches-bin", vision::Cifar10::Part::train,
//                                      {.augmentation = vision::CropAndFlip{}});
//   auto loader = zero::make_data_loader(train.map(torch::data::transforms::Stack<>()), world, {.batch_size = 128});
#include <torch/data/datasets/base.h>
#include <torch/data/datasets/map.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "augmentation.h"

namespace vision {

struct Cifar10Options {
  std::array<double, 3> mean = {0.4914, 0.4822, 0.4465};  // CIFAR-10's values for red, green, blue; white is 1
  std::array<double, 3> std = {0.2470, 0.2435, 0.2616};
  std::optional<CropAndFlip> augmentation = {};
  int classes = 10;
};

class Cifar10 : public torch::data::datasets::Dataset<Cifar10> {
 public:
  enum class Part : std::uint8_t { train, test };

  /// data_batch_1.bin to data_batch_5.bin of the folder, or test_batch.bin. Throws InputError that names the file if it
  /// is missing, truncated or of another kind.
  Cifar10(const std::string& folder, Part part, const Cifar10Options& options = {});
  /// The records of these files, one after the other.
  explicit Cifar10(const std::vector<std::string>& files, const Cifar10Options& options = {});

  /// fp32 [3, 32, 32], (byte / 255 - mean) / std; the label, int64 [].
  torch::data::Example<> get(std::size_t index) override;
  std::optional<std::size_t> size() const override;

  /// Sets the epoch of the augmentation. Copies of a dataset share it, including those in a loader's threads.
  void set_epoch(std::int64_t epoch) const;

  /// Values as in the files. Pictures are uint8 [records, 3, 32, 32], labels int64 [records].
  const torch::Tensor& pictures() const { return pictures_; }
  const torch::Tensor& labels() const { return labels_; }

 private:
  Cifar10Options options_;
  torch::Tensor pictures_, labels_, mean_, std_;
  std::shared_ptr<std::atomic<std::int64_t>> epoch_;
};

/// The path of data_batch_1.bin, and of those that follow it without a gap.
std::vector<std::string> training_files(const std::string& folder);

}  // namespace vision
