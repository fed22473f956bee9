#include "attribution/kubernetes/kubeconfig.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace gpuassay {
namespace {

std::string Config(std::string_view cluster, std::string_view user) {
  return fmt::format(R"(apiVersion: v1
kind: Config
current-context: here
contexts:
- name: other
  context: {{cluster: none, user: none}}
- name: here
  context: {{cluster: c, user: u}}
clusters:
- name: c
  cluster: {{{}}}
users:
- name: u
  user: {{{}}}
)",
                     cluster, user);
}

std::string ErrorOf(const std::string& yaml) {
  const Result<Kubeconfig> config = ParseKubeconfig(yaml);
  return config ? "" : config.error().what;
}

TEST(ParseKubeconfig, ReadsTheCurrentContext) {
  const Result<Kubeconfig> config =
      ParseKubeconfig(Config("server: 'https://10.0.0.1:6443/', certificate-authority-data: Q0E=",
                             "client-certificate-data: Q0VSVA==, client-key: key.pem"));
  ASSERT_TRUE(config);
  EXPECT_EQ(config->server, "https://10.0.0.1:6443");
  EXPECT_EQ(config->ca_pem, "CA");
  EXPECT_EQ(config->certificate_pem, "CERT");
  EXPECT_EQ(config->key_file, "key.pem");
  EXPECT_FALSE(config->insecure);
}

TEST(ParseKubeconfig, ReadsTokens) {
  const Result<Kubeconfig> token =
      ParseKubeconfig(Config("server: https://a, insecure-skip-tls-verify: true", "token: abc"));
  ASSERT_TRUE(token);
  EXPECT_EQ(token->token, "abc");
  EXPECT_TRUE(token->insecure);
  const Result<Kubeconfig> file =
      ParseKubeconfig(Config("server: https://a", "tokenFile: /t/token"));
  ASSERT_TRUE(file);
  EXPECT_EQ(file->token_file, "/t/token");
}

TEST(ParseKubeconfig, SaysWhatIsMissing) {
  EXPECT_EQ(ErrorOf("[]"), "not a kubeconfig");
  EXPECT_EQ(ErrorOf("contexts: []"), "no current-context; choose one of `contexts`");
  EXPECT_EQ(ErrorOf("current-context: x"), "`contexts` has no \"x\"");
  EXPECT_EQ(ErrorOf(Config("server: ftp://a", "")), "`server` is no http(s) address");
  EXPECT_EQ(ErrorOf(Config("server: https://a, certificate-authority-data: '*'", "")),
            "certificate-authority-data is not base64");
  EXPECT_EQ(ErrorOf("a: [b"), "line 1: end of sequence flow not found");
  EXPECT_EQ(ErrorOf(std::string((1 << 20) + 1, '#')), "longer than 1 MiB; is it a kubeconfig?");
}

TEST(ParseKubeconfig, SaysWhatToUseInsteadOfWhatIsNotSupported) {
  EXPECT_EQ(ErrorOf(Config("server: https://a", "exec: {command: aws}")),
            "user \"u\" gets its credentials from the program \"aws\", which is not supported; "
            "use a token, a tokenFile or a client certificate");
  EXPECT_EQ(ErrorOf(Config("server: https://a", "username: me, password: x")),
            "user \"u\" has `username`, which is not supported; "
            "use a token, a tokenFile or a client certificate");
  EXPECT_EQ(ErrorOf(Config("server: https://a, proxy-url: 'http://p'", "")),
            "proxy-url is not supported; use a server that this node reaches directly under the "
            "name in its certificate");
}

TEST(ParseKubeconfig, AnErrorIsOneLineWhateverTheFileNames) {
  EXPECT_EQ(ErrorOf("current-context: \"a\\nb\"\ncontexts: []\n"), "`contexts` has no \"a b\"");
}

TEST(DecodeBase64, ReadsWholeAndPaddedGroups) {
  EXPECT_EQ(DecodeBase64("").value(), "");
  EXPECT_EQ(DecodeBase64("YQ==").value(), "a");
  EXPECT_EQ(DecodeBase64("YWI=\n").value(), "ab");
  EXPECT_EQ(DecodeBase64("YW\nJj").value(), "abc");
  EXPECT_EQ(DecodeBase64("/+8A").value(), std::string("\xFF\xEF\x00", 3));
  for (const char* text : {"Y", "YQ", "YQ=", "=YQ=", "Y===", "YW-j"}) {
    EXPECT_FALSE(DecodeBase64(text)) << text;
  }
}

class AccessFiles : public testing::Test {
 protected:
  AccessFiles() : folder_(testing::TempDir() + "access." + std::to_string(getpid())) {
    std::filesystem::create_directories(folder_);
  }
  ~AccessFiles() override { std::filesystem::remove_all(folder_); }
  void Write(const std::string& name, std::string_view content) const {
    std::ofstream(folder_ + "/" + name) << content;
  }
  std::string folder_;
};

TEST_F(AccessFiles, AreFoundBesideTheKubeconfig) {
  Write("config", Config("server: https://a, certificate-authority: ca.pem",
                         "tokenFile: token, client-certificate: c.pem, client-key: k.pem"));
  Write("ca.pem", "CA");
  Write("token", "abc\n");
  Write("c.pem", "C");
  Write("k.pem", "K");
  const Result<ApiAccess> access = ReadKubeconfig(folder_ + "/config");
  ASSERT_TRUE(access) << access.error().what;
  EXPECT_EQ(access->ca_pem, "CA");
  EXPECT_EQ(access->token, "abc");
  EXPECT_EQ(access->certificate_pem, "C");
  EXPECT_EQ(access->key_pem, "K");
}

TEST_F(AccessFiles, AreReadFromTheServiceAccount) {
  Write("ca.crt", "CA");
  Write("token", "abc");
  const Result<ApiAccess> access = ReadServiceAccount(folder_, "https://10.0.0.1:443");
  ASSERT_TRUE(access);
  EXPECT_EQ(access->token, "abc");
  EXPECT_EQ(access->ca_pem, "CA");
}

TEST_F(AccessFiles, AreRefusedWhenMissingOrEmpty) {
  EXPECT_EQ(ReadKubeconfig(folder_ + "/none").error().code, ErrorCode::kNotFound);
  Write("ca.crt", "CA");
  Write("token", " \n");
  EXPECT_EQ(ReadServiceAccount(folder_, "https://a").error().what,
            folder_ + "/token holds no token");
  Write("token", "a\r\nX-Header: b");
  EXPECT_EQ(ReadServiceAccount(folder_, "https://a").error().what,
            folder_ + "/token holds no token");
}

}  // namespace
}  // namespace gpuassay
