// A user's own header, in a folder of the same name as one of the library's.
#pragma once
#include <cstdio>

inline void say(const char* what, double value) { std::printf("%s %.9f\n", what, value); }
