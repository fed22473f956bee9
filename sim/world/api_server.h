// An API server, as far as a node's agent asks it: real HTTP on a free port of 127.0.0.1 that lists
// and watches the scenario's pods and lists ResourceSlices, for whoever has the token.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "sim/scenario/scenario.h"

namespace gpuassay::sim {

// Answers GET
//   /api/v1/pods                                     a list, or with watch=1 a stream of events
//   /apis/resource.k8s.io/{v1,v1beta1}/resourceslices  a list
// with fieldSelector=spec.nodeName=NAME, limit and continue, and of a watch resourceVersion,
// timeoutSeconds and allowWatchBookmarks (one at once). Everything else is a Status with the code
// that the real one has: 400, 401, 403, 404, 405, and 410 in a watch.
class ApiServer {
 public:
  // Watches that come later than so many changes are told 410, as by the real one.
  static constexpr std::size_t kEventsMax = 4096;

  // Answers from time 0 on. `scenario` outlives it. kIo when there is no port.
  static Result<std::unique_ptr<ApiServer>> Start(const Scenario& scenario);
  virtual ~ApiServer() = default;

  // When this returns, everything is answered as at time `t`: events are in the streams of watches;
  // one that is down refuses connections and has cut them; one that forbids has ended its watches.
  // One caller at a time. The port stays the same.
  virtual void Update(Duration t) = 0;

  virtual std::string address() const = 0;     // "http://127.0.0.1:PORT"
  virtual std::string Kubeconfig() const = 0;  // the text of one for it
};

}  // namespace gpuassay::sim
