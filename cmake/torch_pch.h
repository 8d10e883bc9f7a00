#pragma once
// Precompiled once and reused by every target that sees LibTorch: its headers cost some 15 s a file otherwise.
#include <ATen/ATen.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>
