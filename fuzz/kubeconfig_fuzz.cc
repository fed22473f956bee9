// A kubeconfig as a person or a tool writes it, and base64: either it is refused in one line or it
// says where to go.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "attribution/kubernetes/kubeconfig.h"
#include "base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using gpuassay::Check;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto config = gpuassay::ParseKubeconfig(text)) {
    Check(config->server.starts_with("http"), "a server has an address");
    Check(!config->server.ends_with('/'), "paths are put behind it");
    Check(config->ca_pem.empty() || config->ca_file.empty(), "one of each pair");
    Check(config->token.empty() || config->token_file.empty(), "one of each pair");
    Check(config->key_pem.empty() || config->key_file.empty(), "one of each pair");
  } else {
    const gpuassay::ErrorCode code = config.error().code;
    Check(code == gpuassay::ErrorCode::kMalformed || code == gpuassay::ErrorCode::kUnsupported,
          "bad text is malformed");
    Check(config.error().what.find('\n') == std::string::npos, "an error is one line");
  }
  if (const auto bytes = gpuassay::DecodeBase64(text)) {
    Check(bytes->size() <= size / 4 * 3, "base64 is longer than what it says");
  }
  return 0;
}
