// An API server for tests: a real HTTP or HTTPS server on a free port of 127.0.0.1 whose answers a
// test decides. For tests only; its source is test_api_server_test.cc.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace gpuassay {

struct TestRequest {
  std::string path;
  std::map<std::string, std::string> query;
  std::string authorization;
  bool client_certificate = false;

  bool IsWatch() const { return query.contains("watch"); }
};

struct TestReply {
  enum class Kind {
    kWhole,   // status and body
    kStream,  // status 200, body, then what Send() gives, until EndStreams() or CutStreams()
    kHang,    // never answers
  };
  Kind kind = Kind::kWhole;
  int status = 200;
  std::string body;
  int retry_after_s = 0;
};

// Thread-safe. The handler is called by the threads of the server.
class TestApiServer {
 public:
  using Handler = std::function<TestReply(const TestRequest&)>;
  explicit TestApiServer(Handler handler, bool tls = false);
  ~TestApiServer();
  TestApiServer(const TestApiServer&) = delete;
  TestApiServer& operator=(const TestApiServer&) = delete;

  std::string address() const;       // "http://127.0.0.1:PORT"
  void Send(std::string_view text);  // to all open streams
  void EndStreams();                 // properly
  void CutStreams();                 // in the middle
  // Waits until so many streams have been opened since the start; false after five seconds.
  bool WaitForStreams(int count);

 private:
  class Server;
  std::unique_ptr<Server> server_;
};

}  // namespace gpuassay
