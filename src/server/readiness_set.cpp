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
    reader_.reset(&who);
    reader_until_ = until;
    if (until == readiness::output) {
        await_output();
    } else if (input_ready_) {
        readable_anyway(who);
    }
}

void readiness_set::watch::await_writable(readiness_handler& who, readiness until) {
    writer_.reset(&who);
    writer_until_ = until;
    if (until == readiness::output) {
        await_output();
    } else if (input_ready_) {
        writer_due_ = true;
        make_due();
    }
}

void readiness_set::watch::readable_anyway(readiness_handler& who) {
    reader_.reset(&who);
    reader_due_ = true;
    make_due();
}

// Said again, an edge is seen again: it may have passed while nobody waited.
void readiness_set::watch::await_output() {
    output_asked_ = true;
    epoll_event what{.events = events(), .data = {.ptr = this}};
    const int failed = ::epoll_ctl(set_->epoll_.get(), EPOLL_CTL_MOD, descriptor_, &what);
    MONOLOCK_ASSERT(failed == 0);
}

void readiness_set::watch::make_due() {
    if (!in_due_) {
        set_->due_.push_back(this);
        in_due_ = true;
    }
}

std::uint32_t readiness_set::watch::events() const noexcept {
    if (listens_) {
        return std::uint32_t{EPOLLIN} | std::uint32_t{EPOLLEXCLUSIVE};
    }
    return EPOLLET | EPOLLIN | EPOLLRDHUP | EPOLLPRI |
           (output_asked_ ? std::uint32_t{EPOLLOUT} : 0U);
}

void readiness_set::watch::take_event(std::uint32_t what) {
    if (listens_) {
        if (const auto who = reader_; !given_back_) {
            who->on_readable();
        }
        return;
    }
    const bool ends = (what & end_events) != 0;
    const bool input = ends || (what & EPOLLIN) != 0;
    const bool output = (what & (EPOLLOUT | EPOLLHUP | EPOLLERR)) != 0;
    ended_ = ended_ || ends;
    breaks_off_ = breaks_off_ || (what & EPOLLPRI) != 0;
    input_ready_ = input_ready_ || input;
    if (reader_until_ == readiness::input ? input : output) {
        call_reader();
    }
    if (writer_until_ == readiness::input ? input : output) {
        call_writer();
    }
}

void readiness_set::watch::take_due() {
    in_due_ = false;
    if (reader_due_) {
        call_reader();
    }
    if (writer_due_) {
        call_writer();
    }
}

// The handler may close the connection, wait again, or both; this object stays until the end of the
// turn.
void readiness_set::watch::call_reader() {
    reader_due_ = false;
    if (const auto who = std::move(reader_); who && !given_back_) {
        who->on_readable();
    }
}

void readiness_set::watch::call_writer() {
    writer_due_ = false;
    if (const auto who = std::move(writer_); who && !given_back_) {
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
        const auto reader = std::move(next.reader_);
        const auto writer = std::move(next.writer_);
    }
    for (watch* const each : due_) {
        each->in_due_ = false;
    }
    clean_up();
}

readiness_set::watch_ptr readiness_set::add(int descriptor) {
    return add(std::unique_ptr<watch>{new watch{*this, descriptor}});
}

readiness_set::watch_ptr readiness_set::add_listening(int descriptor, readiness_handler& who) {
    std::unique_ptr<watch> made{new watch{*this, descriptor}};
    made->listens_ = true;
    made->reader_.reset(&who);
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
    done->in_set_.unlink();
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
    calling_.swap(due_);
    for (watch* const each : calling_) {
        if (is_stopped()) {
            each->in_due_ = false;
        } else {
            each->take_due();
        }
    }
    calling_.clear();
}

void readiness_set::look(bool may_sleep) {
    const int count = ::epoll_wait(epoll_.get(), found_.data(), static_cast<int>(found_.size()),
                                   may_sleep ? -1 : 0);
    for (const epoll_event& each :
         std::span{found_}.first(count > 0 ? static_cast<std::size_t>(count) : 0)) {
        if (is_stopped()) {
            return;
        }
        static_cast<watch*>(each.data.ptr)->take_event(each.events);
    }
}

// A handler that goes with its wait may give back more. Whom the next turn is to call has to stay
// until then.
void readiness_set::clean_up() noexcept {
    watch_list to_stay;
    while (!retired_.empty()) {
        watch& next = retired_.front();
        retired_.pop_front();
        if (next.in_due_) {
            to_stay.push_back(next);
        } else {
            std::default_delete<watch>{}(&next);
        }
    }
    retired_.swap(to_stay);
}

}  // namespace monolock::server
