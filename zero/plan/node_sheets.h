#pragma once
// NodeSheets: data sheets of nodes with eight GPUs, for plans that are made on another machine.
#include <string>
#include <vector>

namespace zero {

/// Numbers of one GPU. Links count one direction, in bytes per second. Units are decimal, as in the sheets.
struct NodeSheet {
  std::string name;  // "h100-node"
  int gpus = 8;
  double memory = 0;                     // bytes
  double flops = 0;                      // dense bf16 products, per second
  double memory_rate = 0;                // bytes per second
  double link_in_node = 0;               // to the other GPUs of the node
  double link_between = 0;               // its share of the node's network cards
  double host_link = 0;                  // PCIe
  double host_memory = 0;                // bytes, of the whole node
  double host_rate = 0;                  // bytes per second of the host's memory, of the whole node
  double disk_read = 0, disk_write = 0;  // bytes per second of the node's local NVMe
  std::string source;
  std::string disk_source = "DeepNVMe's published rate for Gen5";
  bool runs_zero = true;  // false: zero has no backend for this GPU
};

const std::vector<NodeSheet>& node_sheets();

/// Throws InputError that lists the names.
const NodeSheet& node_sheet(const std::string& name);

}  // namespace zero
