#include "attribution/kubernetes/kubeconfig.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/plain_text.h"
#include "base/root_fs.h"

namespace gpuassay {
namespace {

constexpr std::string_view kUseInstead = "use a token, a tokenFile or a client certificate";

// The scalar under `key`, empty when there is none.
std::string Scalar(const YAML::Node& map, const char* key) {
  if (!map.IsMap()) return "";
  const YAML::Node value = map[key];
  return value && value.IsScalar() ? value.Scalar() : "";
}

bool Has(const YAML::Node& map, const char* key) {
  if (!map.IsMap()) return false;
  const YAML::Node value = map[key];
  return value && !value.IsNull() && !(value.IsScalar() && value.Scalar().empty());
}

// The entry called `name` of one of the lists "clusters", "contexts", "users", whose content is
// under "cluster", "context", "user".
Result<YAML::Node> Entry(const YAML::Node& root, const char* list, const char* content,
                         const std::string& name) {
  const YAML::Node entries = root[list];
  if (entries && entries.IsSequence()) {
    for (const YAML::Node& entry : entries) {
      if (Scalar(entry, "name") == name && entry.IsMap() && entry[content]) return entry[content];
    }
  }
  return Fail(ErrorCode::kMalformed, fmt::format("`{}` has no \"{}\"", list, name));
}

// NAME-data in base64, or the file NAME.
Result<void> ReadPair(const YAML::Node& map, const std::string& name, std::string& pem,
                      std::string& file) {
  const std::string data = Scalar(map, (name + "-data").c_str());
  if (data.empty()) {
    file = Scalar(map, name.c_str());
    return {};
  }
  Result<std::string> decoded = DecodeBase64(data);
  if (!decoded) {
    return Fail(ErrorCode::kMalformed, fmt::format("{}-data is not base64", name));
  }
  pem = std::move(*decoded);
  return {};
}

Result<void> ReadCluster(const YAML::Node& cluster, Kubeconfig& config) {
  for (const char* key : {"proxy-url", "tls-server-name"}) {
    if (Has(cluster, key)) {
      return Fail(ErrorCode::kUnsupported,
                  fmt::format("{} is not supported; use a server that this node reaches directly "
                              "under the name in its certificate",
                              key));
    }
  }
  config.server = Scalar(cluster, "server");
  while (config.server.ends_with('/')) config.server.pop_back();
  if (!config.server.starts_with("https://") && !config.server.starts_with("http://")) {
    return Fail(ErrorCode::kMalformed, "`server` is no http(s) address");
  }
  config.insecure = Scalar(cluster, "insecure-skip-tls-verify") == "true";
  return ReadPair(cluster, "certificate-authority", config.ca_pem, config.ca_file);
}

Result<void> ReadUser(const YAML::Node& user, const std::string& name, Kubeconfig& config) {
  if (Has(user, "exec")) {
    const YAML::Node exec = user["exec"];
    return Fail(ErrorCode::kUnsupported,
                fmt::format("user \"{}\" gets its credentials from the program \"{}\", which is "
                            "not supported; {}",
                            name, Scalar(exec, "command"), kUseInstead));
  }
  for (const char* key : {"auth-provider", "username", "password", "as"}) {
    if (Has(user, key)) {
      return Fail(ErrorCode::kUnsupported, fmt::format("user \"{}\" has `{}`, which is not "
                                                       "supported; {}",
                                                       name, key, kUseInstead));
    }
  }
  config.token = Scalar(user, "token");
  if (config.token.empty()) config.token_file = Scalar(user, "tokenFile");
  Result<void> done =
      ReadPair(user, "client-certificate", config.certificate_pem, config.certificate_file);
  if (!done) return done;
  return ReadPair(user, "client-key", config.key_pem, config.key_file);
}

Result<Kubeconfig> ReadTree(const YAML::Node& root) {
  if (!root.IsMap()) return Fail(ErrorCode::kMalformed, "not a kubeconfig");
  const std::string current = Scalar(root, "current-context");
  if (current.empty()) {
    return Fail(ErrorCode::kMalformed, "no current-context; choose one of `contexts`");
  }
  const Result<YAML::Node> context = Entry(root, "contexts", "context", current);
  if (!context) return std::unexpected(context.error());
  Kubeconfig config;
  const Result<YAML::Node> cluster =
      Entry(root, "clusters", "cluster", Scalar(*context, "cluster"));
  if (!cluster) return std::unexpected(cluster.error());
  if (const Result<void> done = ReadCluster(*cluster, config); !done) {
    return std::unexpected(done.error());
  }
  const std::string user_name = Scalar(*context, "user");
  if (user_name.empty()) return config;  // anonymous, or a test server
  const Result<YAML::Node> user = Entry(root, "users", "user", user_name);
  if (!user) return std::unexpected(user.error());
  if (const Result<void> done = ReadUser(*user, user_name, config); !done) {
    return std::unexpected(done.error());
  }
  return config;
}

std::string Trim(std::string text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t end = text.find_last_not_of(kSpace);
  text.resize(end == std::string::npos ? 0 : end + 1);
  return text.substr(std::min(text.find_first_not_of(kSpace), text.size()));
}

// A control character in a token would end the header that it is in.
Result<std::string> CheckToken(std::string token, std::string_view where) {
  token = Trim(std::move(token));
  const bool plain = std::ranges::all_of(token, [](char c) { return c > 0x20 && c < 0x7F; });
  if (token.empty() || token.size() > kTokenBytesMax || !plain) {
    return Fail(ErrorCode::kMalformed, fmt::format("{} holds no token", where));
  }
  return token;
}

Result<std::string> ReadFile(const std::string& path) {
  const Result<RootFs> root = RootFs::Open("/");
  if (!root) return std::unexpected(root.error());
  return root->Read(std::filesystem::absolute(path).string());
}

// Fills `content` from the file, which is beside `folder` when it is relative.
Result<void> Fill(const std::filesystem::path& folder, const std::string& file,
                  std::string& content) {
  if (file.empty()) return {};
  Result<std::string> read = ReadFile((folder / file).string());
  if (!read) return std::unexpected(read.error());
  content = std::move(*read);
  return {};
}

}  // namespace

Result<std::string> DecodeBase64(std::string_view text) {
  std::string out;
  std::uint32_t bits = 0;
  int count = 0;
  std::size_t padding = 0, symbols = 0;
  for (const char c : text) {
    if (c == ' ' || c == '\t' || c == '\r' || c == '\n') continue;
    ++symbols;
    if (c == '=') {
      ++padding;
      continue;
    }
    constexpr std::string_view kAlphabet =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const std::size_t value = kAlphabet.find(c);
    if (value == std::string_view::npos || padding > 0) {
      return Fail(ErrorCode::kMalformed, "not base64");
    }
    bits = (bits << 6 | static_cast<std::uint32_t>(value)) & 0xFFFFFF;
    count += 6;
    if (count >= 8) {
      count -= 8;
      out += static_cast<char>(bits >> count & 0xFF);
    }
  }
  if (symbols % 4 != 0 || padding > 2) return Fail(ErrorCode::kMalformed, "not base64");
  return out;
}

Result<Kubeconfig> ParseKubeconfig(std::string_view yaml) {
  if (yaml.size() > kKubeconfigBytesMax) {
    return Fail(ErrorCode::kMalformed, "longer than 1 MiB; is it a kubeconfig?");
  }
  try {
    Result<Kubeconfig> config = ReadTree(YAML::Load(std::string(yaml)));
    if (config) return config;
    return Fail(config.error().code, OneLine(config.error().what));  // it names what is in the file
  } catch (const YAML::Exception& error) {
    return Fail(ErrorCode::kMalformed,
                OneLine(fmt::format("line {}: {}", error.mark.line + 1, error.msg)));
  } catch (const std::exception& error) {
    return Fail(ErrorCode::kMalformed, OneLine(fmt::format("not YAML: {}", error.what())));
  }
}

Result<ApiAccess> ReadKubeconfig(const std::string& path) {
  const Result<std::string> text = ReadFile(path);
  if (!text) return std::unexpected(text.error());
  Result<Kubeconfig> config = ParseKubeconfig(*text);
  if (!config) {
    return Fail(config.error().code, fmt::format("{}: {}", path, config.error().what));
  }
  const std::filesystem::path folder = std::filesystem::absolute(path).parent_path();
  for (const auto& [file, content] :
       {std::pair(&config->ca_file, &config->ca_pem),
        std::pair(&config->token_file, &config->token),
        std::pair(&config->certificate_file, &config->certificate_pem),
        std::pair(&config->key_file, &config->key_pem)}) {
    if (const Result<void> done = Fill(folder, *file, *content); !done) {
      return std::unexpected(done.error());
    }
  }
  ApiAccess access{
      std::move(config->server),          std::move(config->ca_pem), config->insecure, "",
      std::move(config->certificate_pem), std::move(config->key_pem)};
  if (!config->token.empty() || !config->token_file.empty()) {
    Result<std::string> token = CheckToken(std::move(config->token),
                                           config->token_file.empty() ? path : config->token_file);
    if (!token) return std::unexpected(token.error());
    access.token = std::move(*token);
  }
  return access;
}

Result<ApiAccess> ReadServiceAccount(const std::string& directory, const std::string& server) {
  ApiAccess access;
  access.server = server;
  while (access.server.ends_with('/')) access.server.pop_back();
  const std::string token_file = directory + "/token";
  Result<std::string> token = ReadFile(token_file);
  if (!token) return std::unexpected(token.error());
  token = CheckToken(std::move(*token), token_file);
  if (!token) return std::unexpected(token.error());
  access.token = std::move(*token);
  Result<std::string> ca = ReadFile(directory + "/ca.crt");
  if (!ca) return std::unexpected(ca.error());
  access.ca_pem = std::move(*ca);
  return access;
}

}  // namespace gpuassay
