#pragma once
// Precompiled once and reused by every target that includes LibTorch, whose headers otherwise cost some 15 s a file.
#include <ATen/ATen.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>
