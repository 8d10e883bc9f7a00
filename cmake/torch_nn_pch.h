#pragma once
// Precompiled once for those that include torch/torch.h, which costs some 10 s a file more than cmake/torch_pch.h.
#include <torch/torch.h>

#include "cmake/torch_pch.h"
