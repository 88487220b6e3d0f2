#pragma once

#include "server/health.hpp"
#include "server/http/connection.hpp"
#include "server/metrics.hpp"

namespace monolock::server {

// What -ops-listen serves: /healthz, /readyz and /metrics, for GET and HEAD. Everything is answered
// from the control loop alone, whatever the shards do. The arguments must outlive the service.
[[nodiscard]] http::service ops_service(const health& state, const metrics& numbers, logger& log);

}  // namespace monolock::server
