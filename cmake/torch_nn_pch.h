#pragma once
// Precompiled once for the targets that include torch/torch.h. That header costs about 10 s more per file than
// cmake/torch_pch.h.
#include <torch/torch.h>

#include "cmake/torch_pch.h"
