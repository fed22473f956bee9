// Text from outside - names, messages of other programs, files - without what it may not do to a
// line or to a terminal.
#pragma once

#include <string>

namespace gpuassay {

// Control characters (below 0x20, and DEL) as spaces: for messages, which are one line.
std::string OneLine(std::string text);

// Control characters as "?": for names on a terminal, where a reader should see that one was there.
std::string Printable(std::string text);

}  // namespace gpuassay
