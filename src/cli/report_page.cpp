#include "cli/report_page.hpp"

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <stdexcept>
#include <utility>

#include "telemetry/escape.hpp"
#include "web/shared_files.hpp"

namespace monolock::cli {

namespace {

std::string_view file_called(std::span<const web::embedded_file> files, std::string_view name) {
    return std::ranges::find(files, name, &web::embedded_file::name)->bytes;
}

// What a policy calls a script or a style that stands in the page itself.
std::string hash_of(std::string_view text) {
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
    unsigned size = 0;
    if (EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha256(), nullptr) != 1) {
        throw std::runtime_error{"SHA-256 is not available"};
    }
    std::array<unsigned char, std::size_t{4} * ((EVP_MAX_MD_SIZE + 2) / 3) + 1> base64{};
    const int length = EVP_EncodeBlock(base64.data(), digest.data(), static_cast<int>(size));
    return "sha256-" + std::string{base64.begin(), base64.begin() + length};
}

std::string ms_or_null(const std::optional<telemetry::wall_time>& time) {
    return time ? std::to_string(std::chrono::floor<std::chrono::milliseconds>(*time)
                                     .time_since_epoch()
                                     .count())
                : "null";
}

// What is known of the report without the log, in front of what the log says.
std::string data_of(const telemetry::audit_report& report, const audit_report_options& told,
                    telemetry::wall_time made, std::string_view version) {
    std::string out = "{\"version\":";
    telemetry::append_json_string(out, version);
    out += ",\"made\":" + ms_or_null(made) + ",\"files\":[";
    const char* separator = "";
    for (const std::string& file : told.files) {
        out += std::exchange(separator, ",");
        telemetry::append_json_string(out, file == "-" ? "standard input" : file);
    }
    out += "],\"filter\":{\"lock\":";
    if (told.lock) {
        telemetry::append_json_string(out, *told.lock);
    } else {
        out += "null";
    }
    out += ",\"since\":" + ms_or_null(told.since) + ",\"until\":" + ms_or_null(told.until) + "},";
    return telemetry::without_markup(out) + report.to_json().substr(1);
}

}  // namespace

std::string report_page(const telemetry::audit_report& report, const audit_report_options& told,
                        telemetry::wall_time made, std::string_view version) {
    const auto files = report_files();
    const auto drawing = web::shared_files();
    const std::string style = std::string{file_called(drawing, "timeline.css")} +
                              std::string{file_called(files, "report/report.css")};
    const std::string script = std::string{file_called(drawing, "names.js")} +
                               std::string{file_called(drawing, "timeline.js")} +
                               std::string{file_called(files, "report/report.js")};
    const std::string data = data_of(report, told, made, version);
    const std::string style_hash = hash_of(style);
    const std::string script_hash = hash_of(script);
    const std::array<std::pair<std::string_view, std::string_view>, 5> places{
        {{"{{script hash}}", script_hash},
         {"{{style hash}}", style_hash},
         {"{{style}}", style},
         {"{{data}}", data},
         {"{{script}}", script}}};
    // In their order, from left to right: what is put in is not looked at again.
    std::string_view rest = file_called(files, "report/report.html");
    std::string out;
    out.reserve(rest.size() + style.size() + script.size() + data.size());
    for (const auto& [place, text] : places) {
        const std::size_t at = rest.find(place);
        out += rest.substr(0, at);
        out += text;
        rest.remove_prefix(at + place.size());
    }
    out += rest;
    return out;
}

}  // namespace monolock::cli
