#pragma once

#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/basic_stream_descriptor.hpp>
#include <chrono>

namespace monolock::server {

// A thread's event loop. Everything that belongs to a loop is touched by its thread alone; other
// threads reach it by posting.
using loop = boost::asio::io_context;

// One thread runs the loop, and others only post: the loop needs no lock around its descriptors.
inline constexpr int one_thread_hint = BOOST_ASIO_CONCURRENCY_HINT_UNSAFE_IO;

// Asio's objects with the loop's own executor type, which is smaller and quicker than the default.
using watched_descriptor = boost::asio::posix::basic_stream_descriptor<loop::executor_type>;
using loop_timer =
    boost::asio::basic_waitable_timer<std::chrono::steady_clock,
                                      boost::asio::wait_traits<std::chrono::steady_clock>,
                                      loop::executor_type>;

}  // namespace monolock::server
