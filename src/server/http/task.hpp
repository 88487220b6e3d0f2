#pragma once

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "server/loop.hpp"

namespace monolock::server::http {

// A coroutine of the control loop. Its parameters are values or owners, never views.
template <class T>
using task = boost::asio::awaitable<T, loop::executor_type>;

// co_await something(..., as_result) gives the error_code and what else there is, as a tuple.
inline constexpr boost::asio::as_tuple_t<boost::asio::use_awaitable_t<loop::executor_type>>
    as_result{};

}  // namespace monolock::server::http
