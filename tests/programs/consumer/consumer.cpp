// Uses the installed library as another project would: a room without LibTorch, and one with it.
#include <cstdio>

#include "comm/fake_communicator.h"
#include "models/model_config.h"
#include "zero/train/config.h"

int main() {
  const zero::FakeCommunicator communicator(3, 64);
  const zero::Config config = zero::parse_config(
      "[job]\noutput_dir='o'\n[model]\npreset='llama-110m'\n[data]\ntrain='a.bin'\n[training]\nsteps=1\nseq_len=8", "here");
  std::printf("rank %d of %d, %lld wide\n", communicator.rank(), communicator.size(),
              static_cast<long long>(zero::preset_config(*config.model.preset).hidden_size));
}
