// Makes functions of a loaded library missing for dlsym, as in an old driver's library.
#pragma once

#include <functional>
#include <string_view>

namespace gpuassay::sim {

// Hides the exported functions for which `hide` says so from everyone who looks them up later, in
// the shared library that contains `inside`. The entries of its own dynamic symbol table are turned
// into undefined ones in this process's private copy. Returns how many were hidden; 0 also when
// there is no such table.
int HideSymbols(const void* inside, const std::function<bool(std::string_view)>& hide);

}  // namespace gpuassay::sim
