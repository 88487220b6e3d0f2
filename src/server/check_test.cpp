#include "server/check.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "support/pki.hpp"
#include "support/scratch_folder.hpp"

namespace monolock::server {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::StartsWith;

class check_test : public testing::Test {
protected:
    check_test() {
        const test::credentials own = authority_.issue({.dns = {"localhost"}});
        configuration_.tls_cert = write("server.pem", own.certificate);
        configuration_.tls_key = write("server.key", own.key);
        configuration_.tls_client_ca = write("ca.pem", authority_.certificate());
        configuration_.acl_file =
            write("acl.json", R"({"rules":[{"identity":"*","locks":["*"]}]})");
    }

    std::string write(const char* name, const std::string& content) const {
        return folder_.write(name, content);
    }
    [[nodiscard]] std::vector<std::string> wrongs() const {
        const auto found = check(configuration_);
        std::vector<std::string> lines;
        for (const config::diagnostic& each : found ? config::diagnostics{} : found.error()) {
            lines.push_back(each.text);
        }
        return lines;
    }

    test::scratch_folder folder_;
    test::certificate_authority authority_;
    config::server_config configuration_;
};

TEST_F(check_test, says_what_a_server_would_go_by) {
    EXPECT_EQ(*check(configuration_),
              "TLS: clients must show a certificate\n"
              "access rules: 1 rule\n");
    configuration_.acl_file.clear();
    configuration_.tls_client_ca.clear();
    EXPECT_EQ(*check(configuration_),
              "TLS: clients show no certificate\n"
              "access rules: none, every client may claim every lock\n");
    EXPECT_EQ(*check(config::server_config{}),
              "TLS: none, connections are plain\n"
              "access rules: none, every client may claim every lock\n");
}

TEST_F(check_test, tells_everything_that_is_wrong_in_all_files) {
    write("server.key", "no key");
    write("ca.pem", "");
    write("acl.json", R"({"rules":[{"identity":1,"lock":["x"]}]})");
    const auto lines = wrongs();
    EXPECT_THAT(lines, Contains(StartsWith(configuration_.tls_key + ": ")));
    EXPECT_THAT(lines, Contains(StartsWith(configuration_.tls_client_ca + ": ")));
    EXPECT_THAT(lines, Contains(AllOf(StartsWith(configuration_.acl_file + ": "),
                                      HasSubstr("/rules/0/identity"))));
    EXPECT_THAT(lines, Contains(HasSubstr("/rules/0/lock: unknown key")));
}

TEST_F(check_test, the_audit_log_is_looked_at_and_not_made) {
    configuration_.audit_log = folder_.path("audit.log");
    EXPECT_THAT(*check(configuration_),
                testing::EndsWith("\naudit log: " + configuration_.audit_log + "\n"));
    EXPECT_FALSE(fs::exists(configuration_.audit_log));
    configuration_.audit_log = folder_.path("missing/audit.log");
    EXPECT_THAT(wrongs(),
                Contains("audit log " + configuration_.audit_log + ": No such file or directory"));
}

TEST_F(check_test, a_mistake_in_one_file_is_enough) {
    write("acl.json", "{}");
    EXPECT_EQ(wrongs().size(), 1U);
}

TEST_F(check_test, what_calls_to_etcd_will_need_belongs_together) {
    configuration_.etcd_endpoints.emplace_back();
    configuration_.etcd_ca = configuration_.tls_client_ca;
    configuration_.etcd_cert = configuration_.tls_cert;
    configuration_.etcd_key = configuration_.tls_key;
    EXPECT_THAT(wrongs(), testing::IsEmpty());
    configuration_.etcd_key = write("other.key", authority_.issue({.dns = {"localhost"}}).key);
    EXPECT_THAT(wrongs(), Contains(AllOf(HasSubstr("other.key"), HasSubstr("server.pem"))));
    configuration_.etcd_key = folder_.path("none.key");
    configuration_.etcd_ca = write("empty.pem", "");
    EXPECT_THAT(wrongs(), AllOf(Contains(StartsWith(configuration_.etcd_key)),
                                Contains(StartsWith(configuration_.etcd_ca))));
}

}  // namespace
}  // namespace monolock::server
