#include "base/plain_text.h"

#include <algorithm>

namespace gpuassay {
namespace {

bool IsControl(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte < 0x20 || byte == 0x7F;
}

}  // namespace

std::string OneLine(std::string text) {
  std::ranges::replace_if(text, IsControl, ' ');
  return text;
}

std::string Printable(std::string text) {
  std::ranges::replace_if(text, IsControl, '?');
  return text;
}

}  // namespace gpuassay
