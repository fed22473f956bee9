// How to reach the API server and as whom: from a kubeconfig file or from a pod's service account.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace gpuassay {

inline constexpr std::size_t kKubeconfigBytesMax = std::size_t{1} << 20;
inline constexpr std::size_t kTokenBytesMax = std::size_t{64} << 10;

// What the current context of a kubeconfig says. Of each pair at most one is set; the contents are
// decoded. Empty texts: not said.
struct Kubeconfig {
  std::string server;  // "https://host:port", without a slash at the end
  std::string ca_pem, ca_file;
  bool insecure = false;  // insecure-skip-tls-verify
  std::string token, token_file;
  std::string certificate_pem, certificate_file;
  std::string key_pem, key_file;

  bool operator==(const Kubeconfig&) const = default;
};

// Pure. kMalformed when it is none or names what is not in it; kUnsupported for what would need
// another program or is not implemented (exec, auth-provider, username, as, proxy-url,
// tls-server-name), with what to use instead.
Result<Kubeconfig> ParseKubeconfig(std::string_view yaml);

// Standard base64 with padding; white space between is skipped. kMalformed for anything else.
Result<std::string> DecodeBase64(std::string_view text);

// Everything a request needs, read into memory.
struct ApiAccess {
  std::string server;
  std::string ca_pem;  // empty: the certificate authorities of the system
  bool insecure = false;
  std::string token;
  std::string certificate_pem, key_pem;
};

// Reads the file and the files that it names; relative ones are beside it. Read anew for each
// connection, because tokens and certificates are rotated in place.
Result<ApiAccess> ReadKubeconfig(const std::string& path);

// `token` and `ca.crt` in the directory.
Result<ApiAccess> ReadServiceAccount(const std::string& directory, const std::string& server);

}  // namespace gpuassay
