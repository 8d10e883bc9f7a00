#pragma once
// Precompiled once for the targets that include torch/torch.h. That header costs some 10 s a file more
// than cmake/torch_pch.h.
#include <torch/torch.h>

#include "cmake/torch_pch.h"
