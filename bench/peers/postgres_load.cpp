// Locks with PostgreSQL: session-level advisory locks, which the end of the connection releases.

#include <libpq-fe.h>

#include "peers/driver.hpp"

namespace monolock::bench::peers {
namespace {

struct connection_deleter {
    void operator()(PGconn* connection) const noexcept { PQfinish(connection); }
};

struct result_deleter {
    void operator()(PGresult* result) const noexcept { PQclear(result); }
};

class postgres_client final : public client {
public:
    postgres_client(const std::string& host, int port)
        : connection_{PQconnectdb(("host=" + host + " port=" + std::to_string(port) +
                                   " dbname=postgres user=bench connect_timeout=10"
                                   " sslmode=disable gssencmode=disable")
                                      .c_str())} {
        if (PQstatus(connection_.get()) != CONNECTION_OK) {
            fail();
        }
    }

    void acquire(const std::string& name) override { call("pg_advisory_lock", name); }

    // The lock alone: ending the connection would make the next owner wait for a process to end.
    void hand_over() override { call("pg_advisory_unlock", name_); }

    void finish() override { connection_.reset(); }

    void keep_alive() override {
        throw measurement_error("PostgreSQL: a session has no lease to keep");
    }

    void stand_in_line(const std::string& name) override {
        if (PQsendQuery(connection_.get(), query("pg_advisory_lock", name).c_str()) != 1) {
            fail();
        }
    }

private:
    // Advisory locks have numbers; hashing the name is what people do.
    static std::string query(const std::string& function, const std::string& name) {
        return "SELECT " + function + "(hashtextextended('" + name + "', 0))";
    }

    void call(const std::string& function, const std::string& name) {
        name_ = name;
        const std::unique_ptr<PGresult, result_deleter> result{
            PQexec(connection_.get(), query(function, name).c_str())};
        if (PQresultStatus(result.get()) != PGRES_TUPLES_OK) {
            fail();
        }
    }

    [[noreturn]] void fail() {
        throw measurement_error(std::string{"PostgreSQL: "} + PQerrorMessage(connection_.get()));
    }

    std::unique_ptr<PGconn, connection_deleter> connection_;
    std::string name_;
};

}  // namespace
}  // namespace monolock::bench::peers

int main(int argc, char** argv) {
    namespace peers = monolock::bench::peers;
    const auto make = [](const std::string& host, int port) -> std::unique_ptr<peers::client> {
        return std::make_unique<peers::postgres_client>(host, port);
    };
    return peers::run_driver(argc, argv, make);
}
