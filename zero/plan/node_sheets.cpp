#include "zero/plan/node_sheets.h"

#include "base/error.h"

namespace zero {

const std::vector<NodeSheet>& node_sheets() {
  // Host memory rates are those of the processors' memory channels: 8 x DDR5-4800 or 8 x DDR4-3200 per socket, two
  // sockets. Disk rates are those of the drives that the node's guide lists, in one stripe.
  static const std::vector<NodeSheet> sheets{
      {.name = "h100-node",
       .memory = 80e9,
       .flops = 989.4e12,
       .memory_rate = 3.35e12,
       .link_in_node = 450e9,
       .link_between = 50e9,
       .host_link = 64e9,
       .host_memory = 2e12,
       .host_rate = 614e9,
       .disk_read = 48e9,
       .disk_write = 26e9,
       .source = "NVIDIA H100 SXM data sheet; DGX H100 guide (NVLink 4, 8 x 400 Gb/s)"},
      {.name = "h200-node",
       .memory = 141e9,
       .flops = 989.4e12,
       .memory_rate = 4.8e12,
       .link_in_node = 450e9,
       .link_between = 50e9,
       .host_link = 64e9,
       .host_memory = 2e12,
       .host_rate = 614e9,
       .disk_read = 48e9,
       .disk_write = 26e9,
       .source = "NVIDIA H200 SXM data sheet; DGX H200 guide (NVLink 4, 8 x 400 Gb/s)"},
      {.name = "b200-node",
       .memory = 180e9,
       .flops = 2250e12,
       .memory_rate = 8e12,
       .link_in_node = 900e9,
       .link_between = 50e9,
       .host_link = 64e9,
       .host_memory = 2e12,
       .host_rate = 716e9,
       .disk_read = 48e9,
       .disk_write = 26e9,
       .source = "NVIDIA DGX B200 guide (1,440 GB, NVLink 5, 8 x 400 Gb/s); HGX B200 at 1,000 W"},
      {.name = "a100-node",
       .memory = 80e9,
       .flops = 312e12,
       .memory_rate = 2.039e12,
       .link_in_node = 300e9,
       .link_between = 25e9,
       .host_link = 32e9,
       .host_memory = 2e12,
       .host_rate = 410e9,
       .disk_read = 25e9,
       .disk_write = 13e9,
       .source = "NVIDIA A100 80GB SXM data sheet; DGX A100 guide (NVLink 3, 8 x 200 Gb/s)",
       .disk_source = "about half of DeepNVMe's published rate for Gen5, because these are Gen4"},
      {.name = "mi300x-node",
       .memory = 192e9,
       .flops = 1307.4e12,
       .memory_rate = 5.3e12,
       .link_in_node = 448e9,
       .link_between = 50e9,
       .host_link = 64e9,
       .host_memory = 2e12,
       .host_rate = 614e9,
       .disk_read = 48e9,
       .disk_write = 26e9,
       .source = "AMD Instinct MI300X data sheet (7 Infinity Fabric links of 64 GB/s); 8 x 400 Gb/s",
       .runs_zero = false},
  };
  return sheets;
}

const NodeSheet& node_sheet(const std::string& name) {
  std::string names;
  for (const NodeSheet& sheet : node_sheets()) {
    if (sheet.name == name) return sheet;
    names += (names.empty() ? "" : ", ") + sheet.name;
  }
  throw InputError("--machine " + name + ": is no known machine; use one of here, " + names +
                   ", or describe one by --ranks-per-node, --memory and --link");
}

}  // namespace zero
