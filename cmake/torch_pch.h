#pragma once
// Precompiled once and reused by every target that includes LibTorch, whose headers otherwise cost about 15 s per file.
#include <ATen/ATen.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>
