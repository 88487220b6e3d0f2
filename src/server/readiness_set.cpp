#include "server/readiness_set.hpp"

#include <cerrno>
#include <span>
#include <system_error>
#include <utility>

#include "core/assert.hpp"

namespace monolock::server {

namespace {

int make_epoll() {
    const int made = ::epoll_create1(EPOLL_CLOEXEC);
    if (made < 0) {
        throw std::system_error{errno, std::generic_category(), "epoll"};
    }
    return made;
}

constexpr std::uint32_t end_events = EPOLLRDHUP | EPOLLHUP | EPOLLERR;

}  // namespace

// --- one descriptor

void readiness_set::watch::await_readable(readiness_handler& who, readiness until) {
    begin(reader_, who, until);
}

void readiness_set::watch::await_writable(readiness_handler& who, readiness until) {
    begin(writer_, who, until);
}

void readiness_set::watch::readable_anyway(readiness_handler& who) {
    reader_.who.reset(&who);
    make_due(reader_);
}

void readiness_set::watch::begin(wait& one, readiness_handler& who, readiness until) {
    one.who.reset(&who);
    one.until = until;
    if (until == readiness::input) {
        if (input_ready_) {
            make_due(one);
        }
        return;
    }
    // Said again, an edge is seen again: it may have passed while nobody waited.
    output_asked_ = true;
    epoll_event what{.events = events(), .data = {.ptr = this}};
    const int failed = ::epoll_ctl(set_->epoll_.get(), EPOLL_CTL_MOD, descriptor_, &what);
    MONOLOCK_ASSERT(failed == 0);
}

void readiness_set::watch::make_due(wait& one) {
    one.due = true;
    if (!in_due_.is_linked()) {
        set_->due_.push_back(*this);
    }
}

std::uint32_t readiness_set::watch::events() const noexcept {
    if (listens_) {
        return std::uint32_t{EPOLLIN} | std::uint32_t{EPOLLEXCLUSIVE};
    }
    return EPOLLET | EPOLLIN | EPOLLRDHUP | (output_asked_ ? std::uint32_t{EPOLLOUT} : 0U);
}

void readiness_set::watch::take_event(std::uint32_t what) {
    if (listens_) {
        if (const auto who = reader_.who; !given_back_) {
            who->on_readable();
        }
        return;
    }
    const bool ends = (what & end_events) != 0;
    const bool input = ends || (what & EPOLLIN) != 0;
    const bool output = (what & (EPOLLOUT | EPOLLHUP | EPOLLERR)) != 0;
    ended_ = ended_ || ends;
    input_ready_ = input_ready_ || input;
    const auto is_met = [&](const wait& one) {
        return one.until == readiness::input ? input : output;
    };
    if (is_met(reader_)) {
        call_reader();
    }
    if (is_met(writer_)) {
        call_writer();
    }
}

void readiness_set::watch::take_due() {
    if (reader_.due) {
        call_reader();
    }
    if (writer_.due) {
        call_writer();
    }
}

// The handler may close the connection, wait again, or both; this object stays until the end of the
// turn.
void readiness_set::watch::call_reader() {
    reader_.due = false;
    if (const auto who = std::move(reader_.who); who && !given_back_) {
        who->on_readable();
    }
}

void readiness_set::watch::call_writer() {
    writer_.due = false;
    if (const auto who = std::move(writer_.who); who && !given_back_) {
        who->on_writable();
    }
}

void readiness_set::watch::let_go() noexcept {
    ::epoll_ctl(set_->epoll_.get(), EPOLL_CTL_DEL, descriptor_, nullptr);
}

// --- all of them

readiness_set::readiness_set() : epoll_{make_epoll()} {}

// What is forgotten may have been all that kept a handler alive, and with it a connection and its
// watch; so the list is asked anew each time.
readiness_set::~readiness_set() {
    while (!all_.empty()) {
        watch& next = all_.front();
        all_.pop_front();
        const auto reader = std::move(next.reader_.who);
        const auto writer = std::move(next.writer_.who);
    }
    clean_up();
}

readiness_set::watch_ptr readiness_set::add(int descriptor) {
    return add(std::unique_ptr<watch>{new watch{*this, descriptor}});
}

readiness_set::watch_ptr readiness_set::add_listening(int descriptor, readiness_handler& who) {
    std::unique_ptr<watch> made{new watch{*this, descriptor}};
    made->listens_ = true;
    made->reader_.who.reset(&who);
    return add(std::move(made));
}

readiness_set::watch_ptr readiness_set::add(std::unique_ptr<watch> made) {
    epoll_event what{.events = made->events(), .data = {.ptr = made.get()}};
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, made->descriptor_, &what) != 0) {
        return nullptr;
    }
    all_.push_back(*made);
    return watch_ptr{made.release()};
}

void readiness_set::give_back::operator()(watch* done) const noexcept {
    done->given_back_ = true;
    done->in_all_.unlink();
    done->set_->retired_.push_back(*done);
}

void readiness_set::turn(bool may_sleep) {
    ++turns_;
    const bool was_due = is_due();
    call_due();
    look(may_sleep && !was_due);
    clean_up();
}

// Who is due again in this turn has to wait for the next.
void readiness_set::call_due() {
    due_list due;
    due.swap(due_);
    while (!due.empty()) {
        watch& next = due.front();
        due.pop_front();
        next.take_due();
    }
}

void readiness_set::look(bool may_sleep) {
    const int count = ::epoll_wait(epoll_.get(), found_.data(), static_cast<int>(found_.size()),
                                   may_sleep ? -1 : 0);
    for (const epoll_event& each :
         std::span{found_}.first(count > 0 ? static_cast<std::size_t>(count) : 0)) {
        static_cast<watch*>(each.data.ptr)->take_event(each.events);
    }
}

// A handler that goes with its wait may give back more.
void readiness_set::clean_up() noexcept {
    while (!retired_.empty()) {
        retired_.pop_front_and_dispose(std::default_delete<watch>{});
    }
}

}  // namespace monolock::server
