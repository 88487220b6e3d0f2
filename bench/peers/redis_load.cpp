// Locks with Redis as its users make them: SET with NX and PX, a script that deletes the key if it
// is still the owner's, a script that moves the expiry, and a channel on which a release is told.

#include <hiredis/hiredis.h>

#include <cstring>
#include <utility>

#include "peers/driver.hpp"

namespace monolock::bench::peers {
namespace {

constexpr timeval patience{.tv_sec = 10, .tv_usec = 0};
constexpr auto lease_ms = "3600000";

constexpr auto release_script =
    "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0";
constexpr auto hand_over_script =
    "if redis.call('get', KEYS[1]) == ARGV[1] then redis.call('del', KEYS[1]) "
    "redis.call('publish', KEYS[1], 'free') return 1 end return 0";
constexpr auto keep_alive_script =
    "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) "
    "end return 0";

struct reply_deleter {
    void operator()(redisReply* reply) const noexcept { freeReplyObject(reply); }
};
using reply = std::unique_ptr<redisReply, reply_deleter>;

struct context_deleter {
    void operator()(redisContext* context) const noexcept { redisFree(context); }
};

class connection {
public:
    connection() = default;
    connection(const std::string& host, int port)
        : context_{redisConnectWithTimeout(host.c_str(), port, patience)} {
        if (!context_ || context_->err != 0) {
            throw measurement_error(std::string{"Redis: "} +
                                    (context_ ? context_->errstr : "no memory"));
        }
        redisSetTimeout(context_.get(), patience);
    }

    explicit operator bool() const noexcept { return context_ != nullptr; }

    reply command(const std::vector<std::string>& words) {
        std::vector<const char*> starts;
        std::vector<std::size_t> sizes;
        for (const auto& word : words) {
            starts.push_back(word.data());
            sizes.push_back(word.size());
        }
        return checked(redisCommandArgv(context_.get(), static_cast<int>(words.size()),
                                        starts.data(), sizes.data()));
    }

    // What comes next without having been asked for.
    reply next() {
        void* raw = nullptr;
        redisGetReply(context_.get(), &raw);
        return checked(raw);
    }

private:
    reply checked(void* raw) {
        reply answer{static_cast<redisReply*>(raw)};
        if (!answer) {
            throw measurement_error(std::string{"Redis: "} + context_->errstr);
        }
        if (answer->type == REDIS_REPLY_ERROR) {
            throw measurement_error(std::string{"Redis: "} + answer->str);
        }
        return answer;
    }

    std::unique_ptr<redisContext, context_deleter> context_;
};

// Scripts are loaded once and called by their hash.
struct script_hashes {
    std::string release;
    std::string hand_over;
    std::string keep_alive;
};

const script_hashes& scripts(const std::string& host, int port) {
    static const auto loaded = [&] {
        connection loader{host, port};
        const auto load = [&](const char* text) {
            return std::string{loader.command({"SCRIPT", "LOAD", text})->str};
        };
        return script_hashes{.release = load(release_script),
                             .hand_over = load(hand_over_script),
                             .keep_alive = load(keep_alive_script)};
    }();
    return loaded;
}

class redis_client final : public client {
public:
    redis_client(std::string host, int port)
        : host_{std::move(host)},
          port_{port},
          scripts_{scripts(host_, port)},
          commands_{host_, port} {
        static std::atomic<std::uint64_t> last{0};
        mark_ = "owner-" + std::to_string(++last);
    }

    void acquire(const std::string& name) override {
        name_ = name;
        if (take()) {
            return;
        }
        subscribe();
        // Between the first attempt and the subscription a release may have gone unheard.
        while (!take()) {
            static_cast<void>(messages_.next());
        }
        unsubscribe();
    }

    void hand_over() override { expect_one({"EVALSHA", scripts_.hand_over, "1", name_, mark_}); }

    void finish() override { expect_one({"EVALSHA", scripts_.release, "1", name_, mark_}); }

    void keep_alive() override {
        expect_one({"EVALSHA", scripts_.keep_alive, "1", name_, mark_, lease_ms});
    }

    void stand_in_line(const std::string& name) override {
        name_ = name;
        subscribe();
        if (take()) {
            throw measurement_error("Redis: the lock was free");
        }
    }

private:
    bool take() {
        return commands_.command({"SET", name_, mark_, "NX", "PX", lease_ms})->type ==
               REDIS_REPLY_STATUS;
    }

    // A connection that listens to a channel can do nothing else, so it takes a second one.
    void subscribe() {
        if (!messages_) {
            messages_ = connection{host_, port_};
        }
        static_cast<void>(messages_.command({"SUBSCRIBE", name_}));
    }

    void unsubscribe() {
        // A message that was on its way comes before the confirmation.
        auto answer = messages_.command({"UNSUBSCRIBE"});
        while (answer->elements == 0 || std::strcmp(answer->element[0]->str, "unsubscribe") != 0) {
            answer = messages_.next();
        }
    }

    void expect_one(const std::vector<std::string>& words) {
        const auto answer = commands_.command(words);
        if (answer->type != REDIS_REPLY_INTEGER || answer->integer != 1) {
            throw measurement_error("Redis: the lock was not the client's own");
        }
    }

    std::string host_;
    int port_;
    const script_hashes& scripts_;
    connection commands_;
    connection messages_;  // none until the client has to wait
    std::string name_;
    std::string mark_;
};

}  // namespace
}  // namespace monolock::bench::peers

int main(int argc, char** argv) {
    namespace peers = monolock::bench::peers;
    const auto make = [](const std::string& host, int port) -> std::unique_ptr<peers::client> {
        return std::make_unique<peers::redis_client>(host, port);
    };
    return peers::run_driver(argc, argv, make);
}
