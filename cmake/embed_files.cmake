# cmake -D OUTPUT=x.cpp -D NAMESPACE=a::b -D FUNCTION=f -D "FILES=name=path;…" -P embed_files.cmake
# Writes a C++ source that defines a::b::f(), the files' bytes by their names (src/web/embedded_file.hpp). The
# same files give the same source, whenever and wherever.

cmake_minimum_required(VERSION 3.25)

# An array of characters rather than a literal: no limit on its length, and no bytes that need care.
set(arrays "")
set(entries "")
set(number 0)
foreach(pair IN LISTS FILES)
  string(FIND "${pair}" "=" separator)
  string(SUBSTRING "${pair}" 0 ${separator} name)
  math(EXPR separator "${separator} + 1")
  string(SUBSTRING "${pair}" ${separator} -1 path)
  file(READ "${path}" bytes HEX)
  file(SIZE "${path}" size)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," bytes "${bytes}")
  # A NUL at the end, so that an empty file is an array too.
  string(APPEND arrays "constexpr char bytes_${number}[] = {${bytes}'\\0'};\n")
  string(APPEND entries "    {\"${name}\", {bytes_${number}, ${size}}},\n")
  math(EXPR number "${number} + 1")
endforeach()

file(WRITE "${OUTPUT}.new" "// Generated from files; see cmake/embed_files.cmake.
#include <array>
#include <span>

#include \"web/embedded_file.hpp\"

namespace {
${arrays}
constexpr std::array<monolock::web::embedded_file, ${number}> all{{
${entries}}};
}  // namespace

namespace ${NAMESPACE} {
std::span<const monolock::web::embedded_file> ${FUNCTION}() noexcept;
std::span<const monolock::web::embedded_file> ${FUNCTION}() noexcept {
    return all;
}
}  // namespace ${NAMESPACE}
")
file(RENAME "${OUTPUT}.new" "${OUTPUT}")
